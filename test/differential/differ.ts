import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { asyncProperty, check, type Parameters, type RunDetails } from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { FUZZ } from '../../script/proof/differential.ts'
import { takeoverTime } from '../../src/contract/time.ts'
import type { StoreHarness } from '../harnesses/harness.ts'
import { isFull } from '../tier.ts'
import { type Disturbed, disturb, fuzz } from './fuzz.ts'
import { type History, histories } from './history.ts'
import { play, type Rig } from './play.ts'

/** Histories that are played at once, since each mostly waits. Each of them has names and a seed of its own. */
const LANES = 8
const STEPS = 40

const { HOLDFAST_HISTORIES, HOLDFAST_DIFFERENTIAL_MINUTES, HOLDFAST_DIFFERENTIAL_SEED = 0 } = process.env
const FUZZ_MINUTES = Number(process.env.HOLDFAST_FUZZ_MINUTES ?? 0)

/** As many as fit in this time, from this seed on: so does `./script/prove`. @default a number of histories */
const MINUTES = Number(HOLDFAST_DIFFERENTIAL_MINUTES ?? 0)
const FIRST_SEED = Number(HOLDFAST_DIFFERENTIAL_SEED) * LANES + 1

/** In `./script/test`, in `--full`, or as `HOLDFAST_HISTORIES` says. */
const HISTORIES = MINUTES > 0 ? 1e9 : Number(HOLDFAST_HISTORIES ?? (isFull ? 1_000 : 60))

/** Milliseconds after which no other history is played. A slow machine plays three in a second. */
const LONGEST_RUN = MINUTES > 0 ? MINUTES * 60_000 : Math.min(HISTORIES / 3, 480) * 1_000

/** What the differential test does not compare of PostgreSQL. */
export const POSTGRES: Partial<Rig> = {
  // Of two releases at the same moment, neither may wake the waiter. Its store asks for it within 1.7 s. The known limits say so.
  latestWake: 3_000,
  // A waiter that is watched is kept, whatever was answered: R15 asks for that only after `kept`.
  keepsWatched: true,
  // A renewal, a note, an acquire by a holder, and a release that finds nothing lock only the row of their claim. What else
  // has ended is seen by the next request (R9).
  isNarrow: true,
  // A position that is not committed is not counted.
  countsLate: true,
  // A request that keeps positions locks the name for a moment.
  ifLocked: 10,
  // A refusal is decided without the lock of the name, and the position is written by the next statement.
  joinsApart: true,
}

const NOTHING_SHOWN = ': this shows nothing'

/** What is said of a wrong answer, not of a server that refused a request. */
export const WRONG: RegExp = / should be | does not hold|no wake reached| at odds with /

/** Registers the differential test of an engine that knows slots. A failing history is shrunk, and repeated by its seed. */
export function differ(harness: StoreHarness, leniency: Partial<Rig> = {}): void {
  test.skipIf(harness.lacks?.slots)(
    `${harness.name} answers as the rules of a name do`,
    { timeout: LONGEST_RUN + 2 * 60_000 },
    async () => {
      const found = await failures(harness, leniency)
      // A test whose message begins so is not repeated: a wrong answer is one, however busy the machine is.
      if (found !== '' && !found.endsWith(NOTHING_SHOWN)) throw new Error(`Property failed: ${found}`)
      expect(found).toBe('')
    },
  )
  test.skipIf(harness.lacks?.slots)(
    `${harness.name} answers so too through a client that has no subscription yet`,
    { retry: 0 },
    async () => {
      const rig = await rigOf(harness, leniency)
      try {
        expect(await play(UNSUBSCRIBED, rig)).toBeUndefined()
      } finally {
        await Promise.all(rig.clients.map(client => client[Symbol.asyncDispose]()))
      }
    },
  )
  registerFuzz(harness)
  afterAll(() => harness.end())
}

/** Seeds of histories that an engine answered wrongly once, by its harness. `./script/prove --fuzz` adds them. */
const KEPT = join(import.meta.dirname, 'seeds.json')
const keptSeeds = (): Record<string, number[]> => JSON.parse(readFileSync(KEPT, 'utf8')) as Record<string, number[]>

/** With faults: random histories if `./script/prove --fuzz` asks for them, and in `--full` those that failed once. */
function registerFuzz(harness: StoreHarness): void {
  const { name } = harness
  const seeds = keptSeeds()[name] ?? []
  test.runIf(FUZZ_MINUTES > 0)(
    `${name} answers as the rules of a name allow ${FUZZ}`,
    { timeout: FUZZ_MINUTES * 60_000 + 2 * 60_000, retry: 0 },
    async () => {
      const { wrong, played } = await fuzzed(harness, FUZZ_MINUTES * 60_000)
      const all = [...new Set([...seeds, ...wrong.keys()])]
      if (all.length > seeds.length)
        writeFileSync(KEPT, `${JSON.stringify({ ...keptSeeds(), [name]: all }, null, 2)}\n`)
      console.log(`${name}: ${played} histories with faults`)
      expect(Array.from(wrong, ([seed, problem]) => `history ${seed}: ${problem}`)).toEqual([])
      expect(played).toBeGreaterThan(LANES)
    },
  )
  test.runIf(isFull && seeds.length > 0)(`${name} answers the histories that failed once`, { retry: 0 }, async () => {
    const left = [...seeds]
    await disturbed(harness, async clients => {
      for (let seed = left.shift(); seed !== undefined; seed = left.shift())
        expect(await fuzz(clients, seed)).toBeUndefined()
    })
  })
}

/** Plays random histories with faults for so many milliseconds, or until one fails. `wrong`: what failed, by its seed. */
export async function fuzzed(
  harness: StoreHarness,
  ms: number,
): Promise<{ readonly wrong: ReadonlyMap<number, string>; readonly played: number }> {
  const until = performance.now() + ms
  const wrong = new Map<number, string>()
  let seed = FIRST_SEED
  await disturbed(harness, async clients => {
    while (performance.now() < until && wrong.size === 0) {
      const own = seed++
      const problem = await fuzz(clients, own)
      if (problem) wrong.set(own, problem)
    }
  })
  return { wrong, played: seed - FIRST_SEED }
}

async function disturbed(harness: StoreHarness, lane: (clients: Disturbed) => Promise<void>): Promise<void> {
  const clients = await disturb(harness, FIRST_SEED)
  try {
    await Promise.all(Array.from({ length: LANES }, () => lane(clients)))
  } finally {
    await clients.end()
  }
}

const DEMAND = { limit: 1, units: 1, queue: true, roundTrip: 0, isWatched: true }

/** The answer to the first waiter of a client does not say that it is kept. It is not read for longer than its position lasts. */
const UNSUBSCRIBED: History = {
  demands: [
    { ...DEMAND, isBrief: false },
    { ...DEMAND, isBrief: true },
  ],
  steps: [
    { verb: 'acquire', claim: 0, client: 0 },
    { verb: 'acquire', claim: 1, client: 1 },
    { verb: 'wait', ms: 1_100 },
    { verb: 'inspect', client: 2 },
    { verb: 'release', claim: 1, client: 2 },
  ],
}

/** What the rules do not allow of an engine: a history of each lane that found something. */
export async function failures(
  harness: StoreHarness,
  leniency: Partial<Rig> = {},
  more: Parameters<[History]> = {},
): Promise<string> {
  const counts = { decided: 0, undecided: 0 }
  const played = (isDecided: boolean): void => {
    counts[isDecided ? 'decided' : 'undecided'] += 1
  }
  const rig = await rigOf(harness, { ...leniency, played })
  try {
    const found: string[] = []
    const lane = async (_: unknown, index: number): Promise<void> => {
      const parameters = { seed: FIRST_SEED + index, numRuns: Math.ceil(HISTORIES / LANES), ...more }
      const failure = await failureOf(
        () => rig,
        parameters,
        () => found.length > 0,
      )
      if (failure) found.push(failure)
    }
    await Promise.all(Array.from({ length: LANES }, lane))
    if (found.length === 0 && counts.decided < counts.undecided)
      found.push(`only ${counts.decided} histories were decided, and ${counts.undecided} were not${NOTHING_SHOWN}`)
    return found.join('\n\n')
  } finally {
    await Promise.all(rig.clients.map(client => client[Symbol.asyncDispose]()))
  }
}

/** What the rules do not allow, in one of these histories. `undefined`: nothing. */
export async function failureOf(
  rig: () => Rig,
  parameters: Parameters<[History]>,
  isOver: () => boolean = () => false,
): Promise<string | undefined> {
  const property = asyncProperty(histories(rig().brief, STEPS), async history => {
    if (isOver()) return
    const problem = await play(history, rig())
    if (problem) throw new Error(problem)
  })
  const details = await check(property, { ...parameters, interruptAfterTimeLimit: LONGEST_RUN })
  return details.failed ? said(details) : undefined
}

function said({ seed, counterexamplePath, counterexample, errorInstance }: RunDetails<[History]>): string {
  const [history] = counterexample ?? []
  const lines = [
    `${errorInstance instanceof Error ? errorInstance.message : errorInstance} (seed ${seed}, path ${counterexamplePath})`,
    ...(history?.demands ?? []).map((demand, index) => `claim ${index}: ${JSON.stringify(demand)}`),
    ...(history?.steps ?? []).map((step, index) => `step ${index}: ${JSON.stringify(step)}`),
  ]
  return lines.join('\n')
}

/** Three clients of the server. */
async function rigOf(harness: StoreHarness, leniency: Partial<Rig>): Promise<Rig> {
  const clients = await Promise.all([harness.open(), harness.open(), harness.open()])
  const { takeover, waiting } = clients[0].guarantees
  return {
    clients,
    brief: Math.round(450 * (harness.scale ?? 1)),
    precision: 2,
    latestWake: waiting === 'pushed' ? 1_400 : 3_000,
    now: () => performance.now(),
    sleep: ms => new Promise(resolve => setTimeout(resolve, ms)),
    lasts: ms => ms,
    ends: ms => takeoverTime(ms, takeover),
    ...leniency,
  }
}
