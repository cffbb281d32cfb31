import { expect, test } from 'vitest'
import { isFull } from '../tier.ts'
import type { Count } from './ledger.ts'
import { climates, simulate } from './simulate.ts'

/** `SEED=17` repeats one run; `SEEDS=100000` runs more. */
const { SEED, SEEDS = isFull ? 4_000 : 250 } = process.env
const seeds = SEED === undefined ? Array.from({ length: Number(SEEDS) }, (_, seed) => seed) : [Number(SEED)]

/** What 500 runs must show at least. Otherwise they prove nothing. */
const least: Readonly<Record<Count, number>> = {
  grants: 10_000,
  handoffs: 2_000,
  takeovers: 1_000,
  losses: 2_000,
  recovered: 1_000,
  refusedLate: 5_000,
  refusedWithdrawn: 100,
  refusedWrites: 1_000,
  writes: 20_000,
  breaks: 200,
  stops: 500,
  crashes: 100,
  timeouts: 5_000,
  unavailable: 5_000,
  aborted: 1_000,
  extended: 2_000,
  lostReplies: 10_000,
}

const seen = new Map<string, number>()

test.for(climates.map((climate, index) => ({ climate, index })))(
  'no lease is held twice, no token falls and nothing is left behind in $climate runs',
  { timeout: 600_000 },
  async ({ climate, index }) => {
    for (const seed of seeds.filter(each => each % climates.length === index)) {
      const { violations, counts, time } = await simulate(seed)
      const replay = `SEED=${seed} npm test -- test/simulation`
      expect(violations, `${climate}, ${Math.round(time)} ms; replay with ${replay}`).toEqual([])
      for (const [name, count] of Object.entries(counts)) seen.set(name, (seen.get(name) ?? 0) + count)
    }
  },
)

test.runIf(SEED === undefined)('the runs have shown what they are for', () => {
  const share = Math.min(seeds.length / 500, 1)
  const missing = Object.entries(least).filter(
    ([name, count]) => (seen.get(name) ?? 0) < Math.floor(count * share ** 2),
  )
  expect(missing).toEqual([])
})

test('a seed gives the same run each time', async () => {
  for (const seed of seeds.slice(0, climates.length)) expect(await simulate(seed)).toEqual(await simulate(seed))
})
