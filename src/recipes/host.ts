import type { Environment } from '../contract/environment.ts'
import type { Leasing } from '../core/leasing.ts'

/** What a recipe needs: the locks, their environment, and when they are closed. */
export interface Host extends Environment {
  readonly locks: Pick<Leasing, 'using' | 'inspect'>
  /** Aborts with `CLOSED` when `close` begins. */
  readonly closing: AbortSignal
}
