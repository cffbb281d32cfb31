import { checkNode } from './node-version.ts'
import { recordToJSON } from './record.ts'
import { messageText } from './reserved.ts'
import type { LeaseRecord } from './store.ts'

// Runs at the import of this module, and so of every entry point. An older Node would fail later and not say why.
checkNode()

/**
 * What went wrong. The codes are stable.
 * - `BUSY`: the name was not acquired within `wait`. Try later, or leave the work to the holder.
 * - `TOO_MANY_WAITERS`: as many calls of this process as `maxWaiters` already wait for the name, or the store has no room for
 *   more. Try later, or refuse the request that needs it.
 * - `LEASE_LOST`: the lease is over: it was not renewed in time, was broken, or was gone at release. Another holder may
 *   have begun. Stop, and treat what was written without a fence as doubtful.
 * - `MAX_HOLD`: the lease was held for `maxHold` and is no longer renewed. Act as for `LEASE_LOST`. Find out
 *   why the work took so long.
 * - `STORE_UNAVAILABLE`: the store does not answer, or answers that it cannot serve. Try later; if `retryable` is false,
 *   change the server first, as the message says. A held lease goes on until its deadline, and its renewals are retried.
 * - `OUTCOME_UNKNOWN`: a request was sent and got no clear answer, so it may or may not have been carried out. Try again. A
 *   lease that it granted is withdrawn, or ends with its ttl. Reads are rejected with it, too.
 * - `ACCESS_DENIED`: the store refused the user, the password or the certificate, or the user lacks a permission. Correct
 *   the login, or grant what the message names.
 * - `NOT_MIGRATED`: the tables or functions of leases or of a fence are missing. Run the command in the message.
 * - `FORMAT_MISMATCH`: another version of Holdfast wrote what the store or the fence holds. Use one version everywhere, or
 *   do what the message says.
 * - `STALE_TOKEN`: a fence refused the write, because a newer holder has written. Stop: another holder does the work.
 * - `INVALID_ARGUMENT`: an argument is invalid, such as an option, a name or a client. The message says what was expected.
 *   Correct it.
 * - `DRIVER_MISSING`: a client library is not installed, or Node has no SQLite. Run the command in the message.
 * - `CLOSED`: the lease was released, or `close()` was called. At shutdown this is expected. Otherwise make new locks.
 */
export type LeaseErrorCode =
  | 'BUSY'
  | 'TOO_MANY_WAITERS'
  | 'LEASE_LOST'
  | 'MAX_HOLD'
  | 'STORE_UNAVAILABLE'
  | 'OUTCOME_UNKNOWN'
  | 'ACCESS_DENIED'
  | 'NOT_MIGRATED'
  | 'FORMAT_MISMATCH'
  | 'STALE_TOKEN'
  | 'INVALID_ARGUMENT'
  | 'DRIVER_MISSING'
  | 'CLOSED'

/** What an error says in addition to its code and message. */
export interface LeaseErrorOptions {
  readonly cause?: unknown
  /** The name of the lease. */
  readonly leaseName?: string | undefined
  /** May the same call succeed later? @default true for BUSY, TOO_MANY_WAITERS, STORE_UNAVAILABLE and OUTCOME_UNKNOWN */
  readonly retryable?: boolean | undefined
  /** Milliseconds after which the store expects to serve again. */
  readonly retryAfter?: number | undefined
  readonly holder?: LeaseRecord | undefined
  /** With BUSY and TOO_MANY_WAITERS: milliseconds that the call waited. */
  readonly waited?: number | undefined
  /** What the work of `using` returned although its lease was lost. */
  readonly result?: unknown
  /** With STALE_TOKEN: the token that the writer presented. */
  readonly token?: bigint | undefined
  /** With STALE_TOKEN: the highest token that the resource has seen. */
  readonly highest?: bigint | undefined
}

/** How many causes `LeaseError.from` searches. The limit also ends the search if the causes form a cycle. */
const DEEPEST_CAUSE = 10

const DETAILS = ['leaseName', 'retryAfter', 'holder', 'waited', 'result', 'token', 'highest'] as const

const RETRYABLE: ReadonlySet<LeaseErrorCode> = new Set([
  'BUSY',
  'TOO_MANY_WAITERS',
  'STORE_UNAVAILABLE',
  'OUTCOME_UNKNOWN',
])

const brand = Symbol.for('holdfast.LeaseError')

/** The most characters of a message, because servers may answer with long texts. `cause` has the whole text. */
const LONGEST_MESSAGE = 2_000

/** The error of one code, with the fields of that code. See `LeaseErrorCode` for the meaning of each code. */
export interface LeaseErrorOf<Code extends LeaseErrorCode> extends Error {
  /** Always `LeaseError`. */
  readonly name: 'LeaseError'
  /** What went wrong; `LeaseErrorCode` explains each code. */
  readonly code: Code
  /** The name of the lease, if the error is about one. */
  readonly leaseName: string | undefined
  /** May the same call succeed later? */
  readonly retryable: boolean
  /** Milliseconds after which the store expects to serve again. */
  readonly retryAfter: number | undefined
  /** The holder of the name, if the store knows it: its owner, its note, and the milliseconds that remain. */
  readonly holder: Code extends 'BUSY' ? LeaseRecord | undefined : undefined
  /** Milliseconds that the call waited; 0 for `TOO_MANY_WAITERS`. */
  readonly waited: Code extends 'BUSY' | 'TOO_MANY_WAITERS' ? number : undefined
  /** What the work of `using` returned although its lease was lost. */
  readonly result: Code extends 'LEASE_LOST' | 'MAX_HOLD' ? unknown : undefined
  /** The token that the writer presented. */
  readonly token: Code extends 'STALE_TOKEN' ? bigint : undefined
  /** The highest token that the resource has seen. */
  readonly highest: Code extends 'STALE_TOKEN' ? bigint : undefined
  toJSON(): Record<string, unknown>
}

/**
 * Any error of this package. `switch (error.code)` gives the fields of each code. In a `catch`, test with
 * `LeaseError.is(error, 'LEASE_LOST')`. Texts of errors may change; codes do not.
 */
export type LeaseError = { [Code in LeaseErrorCode]: LeaseErrorOf<Code> }[LeaseErrorCode]

/** The class of the errors of this package. `LeaseError.is(error, code)` works across copies of it, unlike `instanceof`. */
export interface LeaseErrorClass {
  readonly prototype: LeaseError
  /** `STALE_TOKEN` needs `token` and `highest` among the options, `BUSY` and `TOO_MANY_WAITERS` need `waited`. */
  new <Code extends LeaseErrorCode>(
    code: Code,
    message: string,
    options?: LeaseErrorOptions,
  ): Extract<LeaseError, { code: Code }>
  /**
   * True for a `LeaseError` of any copy of this package (an application may have two installed), and of this code if one
   * is given.
   */
  is(error: unknown): error is LeaseError
  is<Code extends LeaseErrorCode>(error: unknown, code: Code): error is LeaseErrorOf<Code>
  /**
   * The `LeaseError` that caused `error`: itself, or the first one among its causes, at most ten deep. Use it where other
   * code may have wrapped the error. For example, a function may reject with its own AbortError when `lease.signal`
   * aborts.
   */
  from(error: unknown): LeaseError | undefined
}

export const LeaseError: LeaseErrorClass = class LeaseError extends Error {
  override readonly name = 'LeaseError'
  readonly code: LeaseErrorCode
  readonly retryable: boolean
  // Only values that exist become properties, so a logged error does not list `undefined`.
  declare readonly leaseName: string | undefined
  declare readonly retryAfter: number | undefined
  declare readonly holder: LeaseRecord | undefined
  declare readonly waited: number | undefined
  declare readonly result: unknown
  declare readonly token: bigint | undefined
  declare readonly highest: bigint | undefined

  constructor(code: LeaseErrorCode, message: string, options: LeaseErrorOptions = {}) {
    super(clipped(message), 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.retryable = options.retryable ?? RETRYABLE.has(code)
    for (const key of DETAILS) if (options[key] !== undefined) Object.assign(this, { [key]: options[key] })
    Object.defineProperty(this, brand, { value: true })
  }

  static is(error: unknown, code?: LeaseErrorCode): error is LeaseError {
    const isOne = typeof error === 'object' && error !== null && brand in error && 'code' in error
    return isOne && (code === undefined || error.code === code)
  }

  static from(error: unknown): LeaseError | undefined {
    let next = error
    for (let depth = 0; depth <= DEEPEST_CAUSE; depth += 1) {
      if (LeaseError.is(next)) return next
      if (typeof next !== 'object' || next === null || !('cause' in next)) return undefined
      next = next.cause
    }
    return undefined
  }

  toJSON(): Record<string, unknown> {
    return {
      name: this.name,
      code: this.code,
      message: this.message,
      leaseName: this.leaseName,
      retryable: this.retryable,
      retryAfter: this.retryAfter,
      holder: this.holder && recordToJSON(this.holder),
      waited: this.waited,
      token: this.token?.toString(),
      highest: this.highest?.toString(),
    }
  }
} as unknown as LeaseErrorClass

/** Clips a message, and makes each of its lines printable: a server may answer with any text. */
function clipped(message: string): string {
  return messageText(message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE)}…` : message)
}

/** The message of an error, or the text of another value that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
