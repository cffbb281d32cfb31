import { conformanceCases, type Harness, type NamedCase } from '../../lab/conformance/index.ts'
import type { Guarantees } from '../../src/contract/store.ts'

/** A harness of this repository: the store of `src/stores` that it tests, and how to stop its servers. */
export interface StoreHarness extends Harness {
  readonly store: string
  /**
   * The harness that runs all cases with another client, size or topology. Then only `--full` runs more than the cases
   * of `TRANSPORT`.
   */
  readonly repeats?: string | undefined
  /** The number of cases that run at once. @default 10, because most of them mostly wait */
  readonly parallel?: number | undefined
  end(): Promise<void>
}

/** What a store lacks by its guarantees: the slots of a name. */
export function lacksBy({ sharing }: Guarantees): Harness['lacks'] {
  return sharing === 'slots' ? {} : { slots: 'every claim holds alone' }
}

/** The groups of cases that depend on the client and the connection: what is written and read, messages, closing. */
const TRANSPORT = ['notes', 'wakes', 'inspect and names', 'requests and clients', 'lost and late messages']

/** The cases of a harness that `./script/test` runs. */
export function usualCases(harness: StoreHarness): NamedCase[] {
  const cases = conformanceCases(harness)
  return harness.repeats ? cases.filter(({ group, alone }) => !alone && TRANSPORT.includes(group)) : cases
}
