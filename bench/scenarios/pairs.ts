import { Loops } from '../loops.ts'
import { pause } from '../peer.ts'
import { numberOf, ownCpu, rough, rounded, type Scenario, serverCpu } from '../scenario.ts'
import { quantile } from '../statistics.ts'
import { Votes } from '../votes.ts'
import type { Stage, Values } from '../worker.ts'

export const scenario: Scenario = {
  title: 'Acquire and release without contention',
  about:
    'One process, N loops, each with names of its own. Client CPU is that of the whole process, server CPU that of Redis. ' +
    'A warm-up comes first, because code that seldom runs is compiled late.',
  rounds: 3,
  variants: isQuick =>
    // 256 loops over SQLite let a timer run only after 65,000 pairs, each of which is synced to the disk.
    [1, 64, ...(isQuick ? [] : [256])].map(loops => ({
      name: `${loops} at a time`,
      // Until then V8 compiles, and moves what the start created: 64 at a time, the 99th percentile of the second second
      // is 5.6 ms, and that of the sixth 2.4. A full collection right before would do the same once more.
      settings: { loops, warm: isQuick ? 200 : 5_000, time: isQuick ? 300 : 2_500 },
    })),
  takesPart: peer => peer.can.includes('pairs'),
  async measure(trial) {
    const worker = trial.start('work')
    await worker.reached('warm')
    const before = await serverCpu(trial)
    worker.go()
    await worker.reached('measured')
    const server = (await serverCpu(trial)) - before
    worker.go()
    const values = await worker.values
    return { ...values, serverCpu: (server * 1_000) / numberOf(values, 'pairs') }
  },
  columns: [
    { title: 'pairs/s', value: 'rate', isRatio: true, format: rounded },
    { title: 'p50 ms', value: 'p50', format: rough },
    { title: 'p99 ms', value: 'p99', format: rough },
    { title: 'client CPU us/pair', value: 'clientCpu', isRatio: true, format: rough },
    { title: 'server CPU us/pair', value: 'serverCpu', format: rough },
  ],
}

export async function work({ peer, place, settings, reached }: Stage): Promise<Values> {
  const { loops: count = 1, warm = 0, time = 0 } = settings
  const client = await peer.open(place)
  const loops = new Loops(client, count)
  await pause(warm)
  await reached('warm')
  loops.take()
  const votes = new Votes()
  const [started, cpu] = [performance.now(), ownCpu()]
  await Promise.race([pause(time), loops.ended])
  const [elapsed, used, measured] = [performance.now() - started, ownCpu() - cpu, loops.take()]
  const pairs = measured.length
  const { won, wonAtOnce } = votes
  loops.stop()
  await reached('measured')
  await loops.ended
  await client.close()
  return {
    pairs,
    rate: (pairs * 1_000) / elapsed,
    p50: quantile(measured, 0.5),
    p99: quantile(measured, 0.99),
    clientCpu: (used * 1_000) / pairs,
    wonAtOnce: won > 0 ? (100 * wonAtOnce) / won : undefined,
  }
}
