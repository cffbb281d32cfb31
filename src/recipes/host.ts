import type { Environment } from '../contract/environment.ts'
import type { Locks } from '../core/locks.ts'

/** What a recipe is given: what everybody can do with `Locks`, their time and chance, and when they are closed. */
export interface Host extends Environment {
  readonly locks: Pick<Locks, 'using' | 'inspect'>
  /** Aborts with `CLOSED` when `close` begins. */
  readonly closing: AbortSignal
}
