// Not index.ts: help and wrong usage need none of the library.
import { LeaseError, type LeaseErrorCode } from '../contract/errors.ts'

/** The exit codes of `holdfast`, after sysexits.h, timeout(1) and the shell. */
export const EXIT = {
  /** `break` and `inspect`: nobody holds the name. */
  free: 1,
  /** `prove`: a promise was broken; or none was, and too little happened to tell. */
  violated: 1,
  inconclusive: 2,
  usage: 64,
  unavailable: 69,
  /** A mistake of Holdfast itself. */
  software: 70,
  held: 75,
  lost: 76,
  timeout: 124,
  notExecutable: 126,
  notFound: 127,
  /** Plus the number of the signal. */
  signal: 128,
} as const

/** Ends the program with one line on standard error and this exit code. */
export class Failure extends Error {
  readonly exit: number
  readonly code: string

  constructor(exit: number, code: string, message: string) {
    super(message)
    this.exit = exit
    this.code = code
  }
}

/** The command line cannot be right: exit code 64. */
export class Usage extends Failure {
  constructor(message: string) {
    super(EXIT.usage, 'INVALID_ARGUMENT', message)
  }
}

const EXIT_OF: Readonly<Record<LeaseErrorCode, number>> = {
  INVALID_ARGUMENT: EXIT.usage,
  ACQUIRE_TIMEOUT: EXIT.held,
  LEASE_LOST: EXIT.lost,
  MAX_HOLD: EXIT.lost,
  STALE_TOKEN: EXIT.lost,
  STORE_UNAVAILABLE: EXIT.unavailable,
  OUTCOME_UNKNOWN: EXIT.unavailable,
  DRIVER_MISSING: EXIT.unavailable,
  CLOSED: EXIT.unavailable,
}

/** The exit code that an error stands for. */
export function exitCode(error: unknown): number {
  if (error instanceof Failure) return error.exit
  return LeaseError.is(error) ? EXIT_OF[error.code] : EXIT.software
}
