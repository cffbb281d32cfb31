import { isFull } from '../../tier.ts'
import { testRuns } from '../runs.ts'
import { climates, simulate } from './simulate.ts'

/** What 60 runs must show at least. */
const counts: Readonly<Record<string, number>> = {
  grants: 3_000,
  weights: 300,
  writers: 150,
  readers: 800,
  busy: 100,
  losses: 30,
  stops: 60,
  crashes: 10,
}

testRuns({
  title: 'never more permits than the limit, no reader beside a writer, and nobody waits for ever in $climate runs',
  folder: 'test/simulation/sharing',
  climates,
  seeds: isFull ? 1_000 : 60,
  simulate,
  least: { of: 60, counts },
})
