import { pause } from '../peer.ts'
import { requests } from '../requests.ts'
import { isRedis, listOf, moment, numberOf, ownCpu, rough, rounded, type Scenario, whole } from '../scenario.ts'
import { fairness, quantile } from '../statistics.ts'
import { Votes } from '../votes.ts'
import type { Stage, Values } from '../worker.ts'

const TTL = 10_000
const PROCESSES = 2
const WAITERS = 16

/** The span of a user's patience: who never held in one is counted as starved. Milliseconds. */
const SPAN = 400

export const scenario: Scenario = {
  title: '32 waiters in two processes, one name',
  about:
    'Each waiter calls acquire again before it releases. So 32 waiters always wait, and none acquires from itself. The gap ' +
    'is from the call of release to the next grant. Requests are those of both processes; a script counts as one. A ' +
    'waiter is starved if it acquires nothing for 0.4 s; the figure is the mean over all such spans.',
  rounds: 3,
  variants: isQuick => [{ name: '', settings: { warm: isQuick ? 250 : 6_000, time: isQuick ? 800 : 4_000 } }],
  takesPart: peer => peer.can.includes('wait'),
  async measure(trial) {
    const workers = Array.from({ length: PROCESSES }, () => trial.start('work'))
    await Promise.all(workers.map(worker => worker.reached('open')))
    for (const worker of workers) worker.go()
    const all = await Promise.all(workers.map(worker => worker.values))

    // Time is that during which both were at it.
    const from = Math.max(...all.map(values => numberOf(values, 'from')))
    const to = Math.min(...all.map(values => numberOf(values, 'to')))
    const holds = all
      .flatMap((values, process) => {
        const [waiters, released] = [listOf(values, 'waiters'), listOf(values, 'released')]
        return listOf(values, 'granted').map((granted, index) => ({
          waiter: process * WAITERS + (waiters[index] ?? 0),
          granted,
          released: released[index] ?? Number.NaN,
        }))
      })
      .filter(({ granted }) => granted >= from && granted < to)
      .sort((a, b) => a.granted - b.granted)
    const gaps = holds.slice(1).map(({ granted }, index) => granted - (holds[index]?.released ?? Number.NaN))
    const shares = (start: number, end: number): number[] => {
      const counts = Array<number>(PROCESSES * WAITERS).fill(0)
      for (const { waiter, granted } of holds)
        if (granted >= start && granted < end) counts[waiter] = (counts[waiter] ?? 0) + 1
      return counts
    }
    const spans = Array.from({ length: Math.floor((to - from) / SPAN) }, (_, index) => from + index * SPAN)
    const starved = spans.map(start => shares(start, start + SPAN).filter(share => share === 0).length)
    const sum = (name: string): number => all.reduce((total, values) => total + numberOf(values, name), 0)
    return {
      rate: (holds.length * 1_000) / (to - from),
      gap50: quantile(gaps, 0.5),
      gap99: quantile(gaps, 0.99),
      requests: isRedis(trial.peer.over) ? sum('requests') / sum('grants') : undefined,
      clientCpu: (sum('cpu') * 1_000) / sum('grants'),
      fairness: fairness(shares(from, to)),
      starved: starved.reduce((total, count) => total + count, 0) / starved.length,
      wonAtOnce: (100 * sum('wonAtOnce')) / sum('won'),
      split: sum('won') > 0 ? sum('split') / sum('grants') : undefined,
    }
  },
  columns: [
    { title: 'handoffs/s', value: 'rate', format: rounded },
    { title: 'gap p50 ms', value: 'gap50', format: rough },
    { title: 'gap p99 ms', value: 'gap99', format: rough },
    { title: 'requests each', value: 'requests', format: rough },
    { title: 'client CPU us each', value: 'clientCpu', format: whole },
    { title: 'fairness (Jain)', value: 'fairness', format: value => value.toFixed(3) },
    { title: 'starved of 32', value: 'starved', format: value => value.toFixed(1) },
  ],
}

export async function work({ peer, place, settings, reached }: Stage): Promise<Values> {
  const { warm = 0, time = 0 } = settings
  const client = await peer.open(place)
  const [waiters, granted, released] = [[] as number[], [] as number[], [] as number[]]
  let running = true
  let measuring = false
  const wait = async (own: number): Promise<void> => {
    let next = client.acquire('handoffs', TTL)
    while (running) {
      const release = await next
      const at = moment()
      next = client.acquire('handoffs', TTL)
      await new Promise(setImmediate) // by then that has left, on the connection that the release will take
      if (measuring) {
        waiters.push(own)
        granted.push(at)
        released.push(moment())
      }
      await release()
    }
  }
  // Its first use connects, loads scripts and subscribes.
  await (await client.acquire(`handoffs:${process.pid}`, TTL))()
  await reached('open')
  for (let own = 0; own < WAITERS; own += 1) void wait(own).catch(() => {})
  await pause(warm)
  measuring = true
  const votes = new Votes()
  const [from, sent, cpu] = [moment(), requests(), ownCpu()]
  await pause(time)
  const values: Values = {
    from,
    to: moment(),
    requests: requests() - sent,
    cpu: ownCpu() - cpu,
    grants: granted.length,
    won: votes.won,
    wonAtOnce: votes.wonAtOnce,
    split: votes.split,
  }
  running = false
  measuring = false
  // Waiters that poll may take long to come to an end, and nobody needs them any more.
  return { ...values, waiters, granted, released }
}
