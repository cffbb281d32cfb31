// Do not import index.ts: help and wrong usage must not load the library.
import { LeaseError, type LeaseErrorCode } from '../contract/errors.ts'

export { messageOf } from '../contract/errors.ts'

/** The exit codes of `holdfast`, after sysexits.h, timeout(1) and the shell. */
export const EXIT = {
  /** `break` and `inspect`: the name is free. */
  free: 1,
  /** `ttl`: too few heartbeats to advise a ttl. */
  inconclusive: 2,
  usage: 64,
  unavailable: 69,
  /** A bug of Holdfast. */
  software: 70,
  busy: 75,
  lost: 76,
  /** EX_NOPERM: the store denied access. */
  denied: 77,
  /** EX_CONFIG: tables or functions are missing, or belong to another version. */
  notMigrated: 78,
  timeout: 124,
  notExecutable: 126,
  notFound: 127,
  /** The base for signals: the number of the signal is added. */
  signal: 128,
} as const

/** An error with an exit code. It is printed as one line on standard error. */
export class Failure extends Error {
  readonly exit: number
  readonly code: string

  constructor(exit: number, code: string, message: string) {
    super(message)
    this.exit = exit
    this.code = code
  }
}

/** Wrong usage: exit code 64. */
export class Usage extends Failure {
  constructor(message: string) {
    super(EXIT.usage, 'INVALID_ARGUMENT', message)
  }
}

const EXIT_OF: Readonly<Record<LeaseErrorCode, number>> = {
  INVALID_ARGUMENT: EXIT.usage,
  BUSY: EXIT.busy,
  TOO_MANY_WAITERS: EXIT.busy,
  LEASE_LOST: EXIT.lost,
  MAX_HOLD: EXIT.lost,
  STALE_TOKEN: EXIT.lost,
  STORE_UNAVAILABLE: EXIT.unavailable,
  OUTCOME_UNKNOWN: EXIT.unavailable,
  ACCESS_DENIED: EXIT.denied,
  NOT_MIGRATED: EXIT.notMigrated,
  FORMAT_MISMATCH: EXIT.notMigrated,
  DRIVER_MISSING: EXIT.unavailable,
  CLOSED: EXIT.unavailable,
}

/** The exit code of an error. */
export function exitCode(error: unknown): number {
  if (error instanceof Failure) return error.exit
  return LeaseError.is(error) ? EXIT_OF[error.code] : EXIT.software
}
