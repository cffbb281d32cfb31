import { expect, test } from 'vitest'
import { isFull } from '../../tier.ts'
import { climates } from './faults.ts'
import type { Count } from './ledger.ts'
import { simulate } from './simulate.ts'

/** `SEED=17` repeats one run; `SEEDS=100000` runs more. */
const { SEED, SEEDS = isFull ? 1_600 : 80 } = process.env
const seeds = SEED === undefined ? Array.from({ length: Number(SEEDS) }, (_, seed) => seed) : [Number(SEED)]

/** What 160 runs must show at least. Otherwise they prove nothing. */
const least: Readonly<Record<Count, number>> = {
  answers: 3_000,
  grants: 3_000,
  secondRounds: 1_000,
  ties: 1_000,
  takeovers: 50,
  losses: 300,
  restored: 300,
  quarantined: 10_000,
  forgotten: 100,
  restarts: 200,
  stops: 200,
  crashes: 15,
  steps: 100,
  breaks: 8,
  refusedLate: 2_000,
  refusedWithdrawn: 300,
  writes: 10_000,
  refusedWrites: 300,
  timeouts: 2_000,
  unavailable: 2_000,
  aborted: 300,
  extended: 1_000,
  notes: 500,
  lostReplies: 3_000,
}

const seen = new Map<string, number>()

test.for(climates.map((climate, index) => ({ climate, index })))(
  'of a majority no lease is held twice, no token falls and nothing is left behind in $climate runs',
  { timeout: 600_000 },
  async ({ climate, index }) => {
    for (const seed of seeds.filter(each => each % climates.length === index)) {
      const { violations, counts, time } = await simulate(seed)
      const replay = `SEED=${seed} npm test -- test/simulation/quorum`
      expect(violations, `${climate}, ${Math.round(time)} ms; replay with ${replay}`).toEqual([])
      for (const [name, count] of Object.entries(counts)) seen.set(name, (seen.get(name) ?? 0) + count)
    }
  },
)

test.runIf(SEED === undefined)('the runs have shown what they are for', () => {
  const share = Math.min(seeds.length / 160, 1)
  const missing = Object.entries(least).filter(
    ([name, count]) => (seen.get(name) ?? 0) < Math.floor(count * share ** 2),
  )
  expect(missing).toEqual([])
})

test('a seed gives the same run each time', async () => {
  for (const seed of seeds.slice(0, climates.length)) expect(await simulate(seed)).toEqual(await simulate(seed))
})
