import { LeaseError } from '../contract/errors.ts'

/** An error without its text, which may name hosts, users and data. */
export interface SafeError {
  /** The `code` of the error, else its `name`. `STUCK`: the work ignores the end of its term. */
  readonly code: string
  readonly message: string
}

/** Failures in a row. */
export class Streak {
  count = 0
  /** The last failure. */
  error: SafeError | undefined

  add(error: SafeError): void {
    this.count += 1
    this.error = error
  }

  end(): void {
    this.count = 0
    this.error = undefined
  }
}

/** Makes a `SafeError` from `what` happened and the code of the error. */
export function safeError(what: string, error: unknown): SafeError {
  const { code, name } = (LeaseError.from(error) ?? Object(error)) as { code?: unknown; name?: unknown }
  const isSafe = (each: unknown): each is string => typeof each === 'string' && /^[\w.-]{1,64}$/.test(each)
  const known = [code, name].find(isSafe) ?? 'Error'
  return { code: known, message: `${what}: ${known}` }
}
