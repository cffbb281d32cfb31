import { Loops } from '../loops.ts'
import { pause } from '../peer.ts'
import { rough, type Scenario } from '../scenario.ts'
import { quantile } from '../statistics.ts'
import type { Stage, Values } from '../worker.ts'

/** A pair that takes longer once a server is stopped is not waited for. Milliseconds. */
const PATIENCE = 12_000

export const scenario: Scenario = {
  title: 'Redlock: one of five servers does not respond',
  about:
    'Acquire and release without contention: first with five servers, then with one of them stopped, so that it accepts ' +
    "connections and never answers. The ratio is between the two p99. Each client has its library's default settings, but waits without limit.",
  rounds: 3,
  servers: 5,
  variants: isQuick =>
    [1, 64]
      .filter(loops => !isQuick || loops === 64)
      .map(loops => ({
        name: `${loops} at a time`,
        settings: isQuick
          ? { loops, warm: 200, time: 400, patience: 600 }
          : { loops, warm: 6_000, time: 2_500, patience: PATIENCE },
      })),
  takesPart: peer => peer.can.includes('pairs'),
  async measure({ start, servers }) {
    const worker = start('work')
    await worker.reached('healthy')
    await servers[0].pause()
    worker.go()
    return worker.values
  },
  columns: [
    { title: 'p50 ms', value: 'p50', format: rough },
    { title: 'p99 ms', value: 'p99', format: rough },
    { title: 'one stopped: p50 ms', value: 'stopped50', format: rough, none: 'none in time' },
    { title: 'p99 ms', value: 'stopped99', format: rough, none: 'not in time' },
    { title: 'longest ms', value: 'longest', format: rough, none: 'not in time' },
    { title: 'ratio', value: 'ratio', format: rough },
  ],
}

export async function work({ peer, place, settings, reached }: Stage): Promise<Values> {
  const { loops: count = 1, warm = 0, time = 0, patience = 0 } = settings
  const client = await peer.open(place)
  const loops = new Loops(client, count)
  await pause(warm)
  loops.take()
  await pause(time)
  const healthy = loops.take()
  await reached('healthy')
  loops.take()
  await pause(time)
  loops.stop()
  await Promise.race([loops.ended, pause(patience)])
  // Those under way took longer than any.
  const stopped = [...loops.take(), ...Array<number>(loops.running).fill(Number.POSITIVE_INFINITY)]
  const [p99, stopped99] = [quantile(healthy, 0.99), finite(quantile(stopped, 0.99))]
  return {
    p50: quantile(healthy, 0.5),
    p99,
    stopped50: finite(quantile(stopped, 0.5)),
    stopped99,
    longest: finite(quantile(stopped, 1)),
    ratio: stopped99 && stopped99 / p99,
  }
}

function finite(value: number): number | undefined {
  return Number.isFinite(value) ? value : undefined
}
