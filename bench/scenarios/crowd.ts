import { pause } from '../peer.ts'
import { requests } from '../requests.ts'
import { isRedis, listOf, moment, numberOf, ownCpu, rough, rounded, type Scenario, serverCpu } from '../scenario.ts'
import { quantile } from '../statistics.ts'
import type { Stage, Values } from '../worker.ts'

const TTL = 10_000
const NAME = 'crowd'
/** So many wait before the heap is measured, when all code has run. */
const WARM = 100

export const scenario: Scenario = {
  title: 'Many waiters on one name',
  about:
    'All wait in one process while another holds the name. Measurement starts once all have called. Commands are those ' +
    'that Redis counts, including commands in scripts. KB is heap per waiter after a collection, without the first ' +
    'hundred. Then the holder releases, and each waiter releases as soon as it acquires. The run ends when the last ' +
    'waiter has acquired, or at the limit. With 10,000 waiters, only libraries that do not poll are measured.',
  rounds: 3,
  variants: isQuick =>
    isQuick
      ? [{ name: '1,000 waiters', settings: { waiters: 1_000, settle: 500, time: 500, limit: 1_500 } }]
      : [
          { name: '1,000 waiters', settings: { waiters: 1_000, settle: 700, time: TTL, limit: 6_000 } },
          {
            name: '10,000 waiters',
            settings: { waiters: 10_000, settle: 2_500, time: TTL, limit: 20_000 },
            takesPart: peer => peer === 'holdfast',
          },
        ],
  takesPart: peer => peer.over === 'redis' && peer.can.includes('wait'),
  async measure(trial) {
    const { waiters = 0, time = 0 } = trial.settings
    const counts = isRedis(trial.peer.over)
    const [redis] = trial.servers
    const commands = async (): Promise<number> => Number((await redis.info('stats')).total_commands_processed)
    const holder = trial.start('hold')
    await holder.reached('holding')
    const crowd = trial.start('crowd')
    await crowd.reached('waiting')
    const [before, sent] = [await serverCpu(trial), counts ? await commands() : 0]
    crowd.go()
    await crowd.reached('measured')
    const server = (await serverCpu(trial)) - before
    // By the lines above: the first count itself, and two connections that greet and ask, without the second count.
    const asked = 4
    const carriedOut = counts ? (await commands()) - sent - asked : 0
    holder.go()
    crowd.go()
    const [held, waited] = await Promise.all([holder.values, crowd.values])
    const releasedAt = numberOf(held, 'releasedAt')
    const granted = listOf(waited, 'granted').map(at => at - releasedAt)
    return {
      commands: counts ? (carriedOut * 1_000) / time : undefined,
      memory: numberOf(waited, 'memory'),
      clientCpu: (numberOf(waited, 'cpu') * 100) / time,
      serverCpu: counts ? (server * 100) / time : undefined,
      served: granted.length,
      allServed: granted.length === waiters ? quantile(granted, 1) : undefined,
      requestsEach: counts ? numberOf(waited, 'drainRequests') / granted.length : undefined,
    }
  },
  columns: [
    { title: 'commands/s while waiting', value: 'commands', format: rough },
    { title: 'KB each', value: 'memory', format: rough },
    { title: 'client CPU %', value: 'clientCpu', format: rough },
    { title: 'server CPU %', value: 'serverCpu', format: rough },
    { title: 'served', value: 'served', format: rounded },
    { title: 'all served after ms', value: 'allServed', format: rounded, none: 'not in time' },
    { title: 'requests each', value: 'requestsEach', format: rough },
  ],
}

export async function hold({ peer, place, reached }: Stage): Promise<Values> {
  const client = await peer.open(place)
  const release = await client.acquire(NAME, 60_000)
  await reached('holding')
  const releasedAt = moment()
  await release()
  return { releasedAt }
}

export async function crowd({ peer, place, settings, reached }: Stage): Promise<Values> {
  const { waiters = 0, settle = 0, time = 0, limit = 0 } = settings
  const client = await peer.open(place)
  const granted: number[] = []
  const wait = async (): Promise<void> => {
    const release = await client.acquire(NAME, TTL)
    granted.push(moment())
    await release()
  }
  const all = Array.from({ length: WARM }, wait)
  await pause(settle)
  const memoryBefore = heap()
  all.push(...Array.from({ length: waiters - WARM }, wait))
  const end = Promise.all(all)
  end.catch(() => {})
  await pause(settle)
  const memory = (heap() - memoryBefore) / 1024 / (waiters - WARM)
  await reached('waiting')
  const cpu = ownCpu()
  await pause(time)
  const values: Values = { memory, cpu: ownCpu() - cpu }
  await reached('measured')
  const sentBefore = requests()
  await Promise.race([end, pause(limit)])
  return { ...values, drainRequests: requests() - sentBefore, granted }
}

/** Bytes in use after a collection. */
function heap(): number {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}
