import type { Environment } from '../core.ts'
import type { Locks } from '../locks.ts'

/** What a recipe is given: what everybody can do with `Locks`, their time and chance, and when they are closed. */
export interface Host extends Environment {
  readonly locks: Pick<Locks, 'using' | 'inspect'>
  /** Aborts with `CLOSED` when `close` begins. */
  readonly closing: AbortSignal
}
