import { isFull } from '../../tier.ts'
import { testRuns } from '../runs.ts'
import { climates } from './faults.ts'
import type { Count } from './ledger.ts'
import { simulate } from './simulate.ts'

/** What 160 runs must show at least. */
const counts: Readonly<Record<Count, number>> = {
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

testRuns({
  title: 'of a majority no lease is held twice, no token falls and nothing is left behind in $climate runs',
  folder: 'test/simulation/quorum',
  climates,
  seeds: isFull ? 1_600 : 40,
  simulate,
  least: { of: 160, counts },
})
