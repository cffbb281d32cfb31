import { expect, test } from 'vitest'
import { isFull } from '../../tier.ts'
import { testRuns } from '../runs.ts'
import { climates, simulate } from './simulate.ts'

/** What 60 runs must show at least. */
const counts: Readonly<Record<string, number>> = {
  grants: 700,
  writes: 1_500,
  refusedWrites: 60,
  timeouts: 500,
  losses: 90,
  unavailable: 250,
  aborted: 90,
  extended: 200,
  stops: 100,
  crashes: 10,
  lostReplies: 100,
}

testRuns({
  title: 'over a register no lease is held twice, no token falls and nobody waits for ever in $climate runs',
  folder: 'test/simulation/cas',
  climates,
  seeds: isFull ? 1_500 : 30,
  simulate,
  least: { of: 60, counts },
})

test.each([
  ['tells ages that are too large', { tooOld: 60 }],
  ['ignores versions', { ignoresVersions: true }],
])('a register that %s has two holders', async (_, flaw) => {
  const violations: string[] = []
  for (let seed = 0; violations.length === 0 && seed < 30; seed += 1)
    violations.push(...(await simulate(seed, flaw)).violations)
  expect(violations).toContainEqual(expect.stringMatching(/believe to hold it/))
})
