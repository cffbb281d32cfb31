import type { Harness } from '../../lab/conformance/index.ts'
import type { Guarantees } from '../../src/contract/store.ts'

/** A harness of this repository: the store of `src/stores` that it tests, and how to stop its servers. */
export interface StoreHarness extends Harness {
  readonly store: string
  /**
   * The harness that runs the same cases with another client or size. Then `./script/test` skips the cases that run
   * alone, and `--full` runs all.
   */
  readonly repeats?: string | undefined
  end(): Promise<void>
}

/** What a store lacks by its guarantees: the slots of a name. */
export function lacksBy({ sharing }: Guarantees): Harness['lacks'] {
  return sharing === 'slots' ? {} : { slots: 'every claim holds alone' }
}
