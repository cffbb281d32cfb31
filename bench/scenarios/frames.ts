import { frame } from '../../src/cli/show/top/frame.ts'
import { Screen } from '../../src/cli/show/top/screen.ts'
import { State } from '../../src/cli/show/top/state.ts'
import type { LeaseRecord } from '../../src/contract/store.ts'
import { Sight } from '../../src/dashboard/sight.ts'
import { rough, type Scenario, whole } from '../scenario.ts'
import { median } from '../statistics.ts'
import type { Stage, Values } from '../worker.ts'

const TTL = 10_000
const [COLUMNS, ROWS] = [120, 40]

export const scenario: Scenario = {
  title: 'CPU and bytes per frame of holdfast top',
  about:
    `Looks 0.5 s apart at names that are all renewed, on a screen of ${COLUMNS} by ${ROWS}. A frame sorts the names, lays ` +
    'out the visible ones, and writes the cells that differ. Bytes are what the terminal receives.',
  rounds: 1,
  variants: isQuick =>
    (isQuick ? [200] : [200, 5_000]).map(names => ({
      name: `${whole(names)} names`,
      settings: { names, frames: isQuick ? 50 : 400 },
    })),
  takesPart: peer => peer.over === 'redis' && peer.can.includes('copies'),
  measure: trial => trial.start('work').values,
  columns: [
    { title: 'CPU ms/frame', value: 'cpu', format: rough },
    { title: 'bytes/frame', value: 'bytes', format: whole },
    { title: 'bytes of the first', value: 'first', format: whole },
  ],
}

export function work({ settings: { names = 1, frames = 1 } }: Stage): Promise<Values> {
  const state = new State()
  const screen = new Screen(true)
  const sights = new Map(Array.from({ length: names }, (_, index) => [`job-${index}`, new Sight(`job-${index}`)]))
  const since = Date.now()
  const [times, sizes]: [number[], number[]] = [[], []]
  for (let look = 0; look < frames; look += 1) {
    const at = since + look * 500
    for (const [index, sight] of [...sights.values()].entries()) sight.see([recordOf(sight.name, index, at)], at, 500)
    const { user } = process.cpuUsage()
    state.see({
      ...{ at, since, pause: 500, sights, changes: [], changed: 0, takeovers: 0, signs: new Map() },
      ...{ isPartial: false, search: undefined, failure: undefined },
    })
    const around = { columns: COLUMNS, rows: ROWS, now: at, store: 'redis://cache:6379', prefix: '', nodes: [] }
    sizes.push(Buffer.byteLength(screen.draw(frame(state, around), COLUMNS, ROWS)))
    times.push((process.cpuUsage().user - user) / 1_000)
  }
  const [first = 0, ...later] = sizes
  return Promise.resolve({ cpu: median(times.slice(frames / 4)), bytes: median(later), first })
}

/** Renewed every third of its ttl, each at a time of its own. */
function recordOf(name: string, index: number, at: number): LeaseRecord {
  const remaining = TTL - ((at + index * 97) % (TTL / 3))
  return { name, state: 'held', owner: `worker-${index % 9}`, token: BigInt(index + 1), note: 'prices', remaining }
}
