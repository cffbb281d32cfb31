import { type Held, pause } from '../peer.ts'
import { requests } from '../requests.ts'
import { block, numberOf, ownCpu, rough, rounded, type Scenario, serverCpu, type Trial, whole } from '../scenario.ts'
import type { Stage, Values } from '../worker.ts'

/** So many are taken at once in the beginning. */
const CROWD = 250

const megabytes = (): number => process.memoryUsage.rss() / 2 ** 20

export const scenario: Scenario = {
  title: 'Leases that are held and renewed',
  about:
    'One process holds N leases and does nothing else. Lost counts the leases that the library reported lost; gone counts ' +
    'those that were no longer in Redis at the end. The stall is a busy event loop in the middle of the run.',
  rounds: 1,
  variants: isQuick => {
    if (isQuick) {
      const settings = { leases: 1_000, ttl: 3_000, time: 3_000, stall: 450 }
      return [{ name: '1,000 leases of 3 s, one stall of 0.45 s', settings }]
    }
    const few = { leases: 5_000, ttl: 10_000, stall: 0 }
    const many = { leases: 100_000, ttl: 30_000, time: 60_000, stall: 0 }
    const isOurs = (name: string): boolean => name.startsWith('holdfast')
    return [
      // Whole intervals of 3.3 and 8 s. Of 9.5 s it has 4.2: one beat more or less would tell otherwise. The stall is
      // there for the losses alone.
      { name: '5,000 leases of 10 s', settings: { ...few, time: 40_000 } },
      { name: '5,000 leases of 10 s, one stall of 1.5 s', settings: { ...few, time: 19_000, stall: 1_500 } },
      { name: '100,000 leases of 30 s', settings: many, takesPart: isOurs },
    ]
  },
  takesPart: peer => peer.over === 'redis' && peer.can.includes('held'),
  async measure(trial) {
    const { leases = 1, time = 1 } = trial.settings
    const worker = trial.start('work')
    await worker.reached('held')
    const before = await serverCpu(trial)
    worker.go()
    await worker.reached('measured')
    const server = (await serverCpu(trial)) - before
    const there = await keysThere(trial, leases)
    worker.go()
    const values = await worker.values
    return {
      requests: (numberOf(values, 'requests') * 1_000) / time,
      clientCpu: (numberOf(values, 'cpu') * 100) / time,
      serverCpu: (server * 100) / time,
      memory: numberOf(values, 'memory'),
      memoryEach: (numberOf(values, 'grown') * 1_024) / leases,
      lost: numberOf(values, 'lost'),
      gone: leases - there,
    }
  },
  columns: [
    { title: 'requests/s', value: 'requests', format: rounded },
    { title: 'client CPU %', value: 'clientCpu', format: rough },
    { title: 'server CPU %', value: 'serverCpu', format: rough },
    { title: 'RSS MB', value: 'memory', format: whole },
    { title: 'KB each', value: 'memoryEach', format: rough },
    { title: 'lost', value: 'lost', format: whole },
    { title: 'gone', value: 'gone', format: whole },
  ],
}

const nameOf = (index: number): string => `renewals:${index}`

/** How many of the leases Redis has. */
async function keysThere({ peer, servers: [redis] }: Trial, leases: number): Promise<number> {
  const keys = Array.from({ length: leases }, (_, index) => peer.key?.(nameOf(index)) ?? '')
  let there = 0
  while (keys.length > 0) {
    const page = keys.splice(0, 1_000)
    if (!peer.isHeld) there += Number(await redis.call('EXISTS', ...page))
    else
      for (const value of (await redis.call('MGET', ...page)) as (string | null)[])
        there += peer.isHeld(value ?? '') ? 1 : 0
  }
  return there
}

export async function work({ peer, place, settings, reached }: Stage): Promise<Values> {
  const { leases = 0, ttl = 0, time = 0, stall = 0 } = settings
  const client = await peer.open(place)
  if (!client.hold) throw new Error(`${peer.label} cannot hold a lease`)
  const before = megabytes()
  let lost = 0
  const onLost = (): void => {
    lost += 1
  }
  const hold = client.hold.bind(client)
  const held: Held[] = []
  for (let first = 0; first < leases; first += CROWD) {
    const names = Array.from({ length: Math.min(CROWD, leases - first) }, (_, index) => nameOf(first + index))
    const taken = await Promise.all(names.map(name => hold(name, ttl, onLost)))
    held.push(...taken)
  }
  await reached('held')
  const [sent, cpu] = [requests(), ownCpu()]
  await pause(time / 2)
  block(stall)
  await pause(time / 2 - stall)
  const values: Values = { requests: requests() - sent, cpu: ownCpu() - cpu }
  await reached('measured')
  const memory = megabytes()
  // Kept to here, or their memory could go.
  const alive = held.filter(lease => lease.isHeld?.() ?? true).length
  return { ...values, memory, grown: memory - before, lost, alive }
}
