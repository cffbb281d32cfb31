import { isFull } from '../tier.ts'
import type { Count } from './ledger.ts'
import { testRuns } from './runs.ts'
import { climates, simulate } from './simulate.ts'

/** What 600 runs must show at least. */
const counts: Readonly<Record<Count, number>> = {
  grants: 10_000,
  keeps: 500,
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

testRuns({
  title: 'no lease is held twice, no token falls and nothing is left behind in $climate runs',
  folder: 'test/simulation',
  climates,
  seeds: isFull ? 4_800 : 150,
  simulate,
  least: { of: 600, counts },
})
