import { pause } from '../peer.ts'
import { requests } from '../requests.ts'
import { listOf, moment, numberOf, ownCpu, rough, rounded, type Scenario, serverCpu } from '../scenario.ts'
import { quantile } from '../statistics.ts'
import type { Stage, Values } from '../worker.ts'

const TTL = 10_000
const NAME = 'crowd'

export const scenario: Scenario = {
  title: '1,000 waiters on one name',
  about:
    'They wait in one process while another holds the name, and are looked at from half a second after the last of ' +
    'them asked. Then the holder gives it back, and each that gets it gives it back at once. Through is when the last ' +
    'had it, if all had it within the limit.',
  rounds: 3,
  variants: isQuick => [
    { name: '', settings: { waiters: 1_000, time: isQuick ? 500 : 4_000, limit: isQuick ? 1_500 : 6_000 } },
  ],
  takesPart: peer => peer.can.includes('wait') && peer.over !== 'sqlite',
  async measure(trial) {
    const { waiters = 0, time = 0 } = trial.settings
    const holder = trial.start('hold')
    await holder.reached('holding')
    const crowd = trial.start('crowd')
    await crowd.reached('waiting')
    const before = await serverCpu(trial)
    crowd.go()
    await crowd.reached('measured')
    const server = (await serverCpu(trial)) - before
    holder.go()
    crowd.go()
    const [held, waited] = await Promise.all([holder.values, crowd.values])
    const releasedAt = numberOf(held, 'releasedAt')
    const granted = listOf(waited, 'granted').map(at => at - releasedAt)
    const isRedis = trial.peer.over === 'redis'
    return {
      requests: isRedis ? (numberOf(waited, 'requests') * 1_000) / time : undefined,
      clientCpu: (numberOf(waited, 'cpu') * 100) / time,
      serverCpu: isRedis ? (server * 100) / time : undefined,
      served: granted.length,
      through: granted.length === waiters ? quantile(granted, 1) : undefined,
      requestsEach: isRedis ? numberOf(waited, 'drainRequests') / granted.length : undefined,
    }
  },
  columns: [
    { title: 'requests/s while waiting', value: 'requests', format: rounded },
    { title: 'client CPU %', value: 'clientCpu', format: rough },
    { title: 'server CPU %', value: 'serverCpu', format: rough },
    { title: 'had it', value: 'served', format: rounded },
    { title: 'all through after ms', value: 'through', format: rounded, none: 'not in time' },
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
  const { waiters = 0, time = 0, limit = 0 } = settings
  const client = await peer.open(place)
  const granted: number[] = []
  const wait = async (): Promise<void> => {
    const release = await client.acquire(NAME, TTL)
    granted.push(moment())
    await release()
  }
  const all = Promise.all(Array.from({ length: waiters }, wait))
  all.catch(() => {})
  await pause(500)
  await reached('waiting')
  const [sent, cpu] = [requests(), ownCpu()]
  await pause(time)
  const values: Values = { requests: requests() - sent, cpu: ownCpu() - cpu }
  await reached('measured')
  const sentBefore = requests()
  await Promise.race([all, pause(limit)])
  return { ...values, drainRequests: requests() - sentBefore, granted }
}
