import type { Harness } from '../../src/conformance/index.ts'

/** A harness of ours: which store of `src/stores` it tests, and how to stop what it started. */
export interface StoreHarness extends Harness {
  readonly store: string
  end(): Promise<void>
}
