import type { Case } from './case.ts'
import { burstCases, claimCases, releaseCases } from './claims.ts'
import { clientCases } from './clients.ts'
import { faultCases } from './faults.ts'
import { checkHarness, type Harness, type Need } from './harness.ts'
import { holdingCases } from './holding.ts'
import { inspectionCases } from './inspection.ts'
import { lostWakeCases } from './lost-wakes.ts'
import { messageCases } from './messages.ts'
import { noteCases } from './notes.ts'
import { queueCases } from './queue.ts'
import { clockCases, renewalCases, tokenCases } from './renewals.ts'
import { sharingCases } from './sharing.ts'
import { slotQueueCases } from './slot-queue.ts'
import { slotCases } from './slots.ts'
import { Space } from './space.ts'
import { staleCases } from './stale.ts'
import { usingCases } from './using.ts'
import { waitingCases } from './waiting.ts'
import { wakeCases } from './wakes.ts'

export type { Cure, Delayable, Faults, Harness, Need, Severable } from './harness.ts'

const groups: Readonly<Record<string, readonly Case[]>> = {
  acquire: [...claimCases, ...burstCases],
  release: releaseCases,
  'renewal, expiry and break': renewalCases,
  tokens: [...tokenCases, ...clockCases],
  notes: noteCases,
  'stale requests': staleCases,
  queue: queueCases,
  wakes: [...wakeCases, ...lostWakeCases],
  'inspect and names': inspectionCases,
  'requests and clients': clientCases,
  'holding a lease': holdingCases,
  waiting: waitingCases,
  'using and close': usingCases,
  slots: [...slotCases, ...slotQueueCases],
  sharing: sharingCases,
  'lost and late messages': messageCases,
  faults: faultCases,
}

/** One test of the suite. */
export interface NamedCase {
  readonly group: string
  /** A sentence about behaviour, after the rule of the contract (`src/contract/store.ts`) that it checks, such as `R4: `. */
  readonly name: string
  /** The case must run alone in this process and against this server. Other cases may run in parallel. */
  readonly alone: boolean
  /** Resolves when the store behaves so. Takes up to about ten seconds on a slow machine. */
  run(): Promise<void>
}

/** A case that a harness cannot run, and the reason that the harness gives. */
export interface ExcludedCase {
  readonly group: string
  readonly name: string
  readonly need: Need
  readonly why: string
}

/** The functions of a test runner, as Vitest, Jest, Mocha and `node:test` have them. */
export interface Runner {
  readonly describe: (name: string, body: () => void) => unknown
  readonly test: (name: string, body: () => Promise<void>) => unknown
  /** For the cases that may run in parallel, such as Vitest's `test.concurrent`. They come first. @default test */
  readonly concurrent?: (name: string, body: () => Promise<void>) => unknown
}

/**
 * Registers the suite that every store passes with a test runner. Give each test 60 s.
 *
 *     import { describe, test } from 'node:test'
 *     conformance({ name: 'mine', open: async () => myStore(), lacks: { cut: 'there is no network', … } }, { describe, test })
 *
 * Throws a `TypeError` if the harness neither has a fault nor says why.
 */
export function conformance(harness: Harness, runner: Runner): void {
  const { describe, test, concurrent = test } = runner
  const cases = conformanceCases(harness)
  describe(harness.name, () => {
    for (const { group, name, run } of cases.filter(({ alone }) => !alone)) concurrent(`${group}: ${name}`, run)
    for (const { group, name, run } of cases.filter(({ alone }) => alone)) test(`${group}: ${name}`, run)
  })
}

/** The cases that a store with this harness must pass, for other runners. */
export function conformanceCases(harness: Harness): NamedCase[] {
  checkHarness(harness)
  return allCases()
    .filter(({ needs = [] }) => needs.every(need => harness.lacks?.[need] === undefined))
    .map(({ group, name, alone = false, run }) => ({
      group,
      name,
      alone,
      async run() {
        await using space = new Space(harness)
        await run(space)
      },
    }))
}

/** The cases that do not apply to this harness, because of what it lacks. */
export function excludedCases(harness: Harness): ExcludedCase[] {
  checkHarness(harness)
  return allCases().flatMap(({ group, name, needs = [] }) => {
    const need = needs.find(each => harness.lacks?.[each] !== undefined)
    return need ? [{ group, name, need, why: harness.lacks?.[need] ?? '' }] : []
  })
}

function allCases(): (Case & { readonly group: string })[] {
  return Object.entries(groups).flatMap(([group, cases]) => cases.map(each => ({ ...each, group })))
}
