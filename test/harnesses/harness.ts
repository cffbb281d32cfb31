import type { Harness } from '../../src/conformance/index.ts'

/** A harness of ours: which store of `src/stores` it tests, and how to stop what it started. */
export interface StoreHarness extends Harness {
  readonly store: string
  /**
   * The harness that shows the same with another client or size. `./script/test` then leaves out the cases that run
   * alone; `--full` runs all.
   */
  readonly repeats?: string | undefined
  end(): Promise<void>
}
