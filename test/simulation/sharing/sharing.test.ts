import { expect, test } from 'vitest'
import { isFull } from '../../tier.ts'
import { climates, simulate } from './simulate.ts'

/** `SEED=17` repeats one run; `SEEDS=10000` runs more. */
const { SEED, SEEDS = isFull ? 1_000 : 60 } = process.env
const seeds = SEED === undefined ? Array.from({ length: Number(SEEDS) }, (_, seed) => seed) : [Number(SEED)]

/** What 60 runs must show at least. Otherwise they prove nothing. */
const least: Readonly<Record<string, number>> = {
  grants: 3_000,
  weights: 300,
  writers: 150,
  readers: 800,
  busy: 100,
  losses: 30,
  stops: 60,
  crashes: 10,
}

const seen = new Map<string, number>()

test.for(climates.map((climate, index) => ({ climate, index })))(
  'never more permits than the limit, no reader beside a writer, and nobody waits for ever in $climate runs',
  { timeout: 600_000 },
  async ({ climate, index }) => {
    for (const seed of seeds.filter(each => each % climates.length === index)) {
      const { violations, counts, time } = await simulate(seed)
      const replay = `SEED=${seed} npm test -- test/simulation/sharing`
      expect(violations, `${climate}, ${Math.round(time)} ms; replay with ${replay}`).toEqual([])
      for (const [name, count] of Object.entries(counts)) seen.set(name, (seen.get(name) ?? 0) + count)
    }
  },
)

test.runIf(SEED === undefined)('the runs have shown what they are for', () => {
  const missing = Object.entries(least).filter(
    ([name, count]) => (seen.get(name) ?? 0) < Math.floor((count * seeds.length) / 60),
  )
  expect(missing.map(([name]) => [name, seen.get(name)])).toEqual([])
})
