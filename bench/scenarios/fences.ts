import { countRoundTrips } from '../../test/round-trips.ts'
import { pause, type Writer } from '../peer.ts'
import { rough, rounded, type Scenario } from '../scenario.ts'
import { quantile } from '../statistics.ts'
import type { Stage, Values } from '../worker.ts'

export const scenario: Scenario = {
  title: 'A fenced write',
  about:
    'One process, N loops. Each loop writes one row in a transaction, one key, one object, one file, or through a service ' +
    'in the same process. Turns of 200 ms with and without the fence alternate. One holder writes, so the token does not ' +
    'change. Round trips are counted over writes made one after another.',
  rounds: 3,
  variants: isQuick =>
    (isQuick ? [1] : [1, 16]).map(loops => ({
      name: `${loops} at a time`,
      settings: isQuick ? { loops, warm: 1, turns: 2 } : { loops, warm: 5, turns: 10 },
    })),
  takesPart: peer => peer.openWriter !== undefined,
  measure: trial => trial.start('work').values,
  columns: [
    { title: 'round trips without', value: 'plainTrips', format: String },
    { title: 'with', value: 'fencedTrips', format: String },
    { title: 'writes/s without', value: 'plainRate', format: rounded },
    { title: 'with', value: 'fencedRate', format: rounded },
    { title: 'with/without', value: 'ratio', format: rough },
    { title: 'p50 ms without', value: 'plain50', format: rough },
    { title: 'with', value: 'fenced50', format: rough },
  ],
}

const TURN = 200
/** Writes of which the round trips are counted. */
const COUNTED = 20

export async function work({ peer, place, settings }: Stage): Promise<Values> {
  const { loops = 1, warm = 1, turns = 1 } = settings
  const roundTrips = countRoundTrips()
  const writer = await peer.openWriter?.(place)
  if (!writer) throw new Error(`${peer.label} has no fence`)
  const [plain, fenced]: [number[], number[]] = [[], []]
  for (let turn = -warm; turn < turns; turn += 1) {
    if (turn === 0) plain.length = fenced.length = 0 // warm by now
    plain.push(...(await write(writer, 'plain', loops)))
    fenced.push(...(await write(writer, 'fenced', loops)))
  }
  const tripsOf = async (how: 'plain' | 'fenced'): Promise<number> => {
    const before = roundTrips()
    for (let count = 0; count < COUNTED; count += 1) await writer[how]()
    return (roundTrips() - before) / COUNTED
  }
  const [plainTrips, fencedTrips] = [await tripsOf('plain'), await tripsOf('fenced')]
  await writer.close()
  const seconds = (turns * TURN) / 1_000
  return {
    plainTrips,
    fencedTrips,
    extraTrips: fencedTrips - plainTrips,
    plainRate: plain.length / seconds,
    fencedRate: fenced.length / seconds,
    ratio: fenced.length / plain.length,
    plain50: quantile(plain, 0.5),
    fenced50: quantile(fenced, 0.5),
  }
}

/** Milliseconds of each write of one turn. */
async function write(writer: Writer, how: 'plain' | 'fenced', loops: number): Promise<number[]> {
  const latencies: number[] = []
  let isOver = false
  const loop = async (): Promise<void> => {
    while (!isOver) {
      const started = performance.now()
      await writer[how]()
      latencies.push(performance.now() - started)
      // What never leaves the thread would else let no timer run.
      if (latencies.length % 64 === 0) await new Promise(setImmediate)
    }
  }
  const all = Promise.all(Array.from({ length: loops }, loop))
  await pause(TURN)
  isOver = true
  await all
  return latencies
}
