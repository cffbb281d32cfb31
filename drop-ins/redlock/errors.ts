import type { ExecutionStats } from './execution.ts'

/** A resource is locked by another lock, or a lock is no longer held. */
export class ResourceLockedError extends Error {
  override name = 'ResourceLockedError'
}

/** An operation did not succeed. `cause` is the error of Holdfast, if there is one. */
export class ExecutionError extends Error {
  override name = 'ExecutionError'
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>

  constructor(message: string, attempts: ReadonlyArray<Promise<ExecutionStats>>, options?: ErrorOptions) {
    super(message, options)
    this.attempts = attempts
  }
}
