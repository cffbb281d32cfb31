import { recordToJSON } from './record.ts'
import type { LeaseRecord } from './store.ts'

/** Stable codes, for programs. */
export type LeaseErrorCode =
  /** The name was not had within `wait`; `holder` says who has it. */
  | 'ACQUIRE_TIMEOUT'
  /** The lease is over: it ran out, was broken, or its session ended. `using` adds the `result` of the work. */
  | 'LEASE_LOST'
  /** The lease was held for `maxHold` and is no longer renewed. */
  | 'MAX_HOLD'
  /** The store does not answer, or answers that it cannot serve. */
  | 'STORE_UNAVAILABLE'
  /** A request left and no answer came: it may or may not have been carried out. */
  | 'OUTCOME_UNKNOWN'
  /** A newer holder has written to the resource already. */
  | 'STALE_TOKEN'
  /** What was passed in cannot be right; the message says what was expected. */
  | 'INVALID_ARGUMENT'
  /** The package of the engine's client is not installed; the message has the line that installs it. */
  | 'DRIVER_MISSING'
  /** The lease was released, or `close()` was called. */
  | 'CLOSED'

export interface LeaseErrorOptions {
  readonly cause?: unknown
  /** The name of the lease. */
  readonly lease?: string | undefined
  /** May the same call succeed later? @default true for STORE_UNAVAILABLE, OUTCOME_UNKNOWN and ACQUIRE_TIMEOUT */
  readonly retryable?: boolean | undefined
  /** Milliseconds after which the store expects to serve again. */
  readonly retryAfter?: number | undefined
  readonly holder?: LeaseRecord | undefined
  /** What the work of `using` returned although its lease was lost. */
  readonly result?: unknown
  /** Of STALE_TOKEN: the token that was shown. */
  readonly token?: bigint | undefined
  /** Of STALE_TOKEN: the highest token that the resource has seen. */
  readonly highest?: bigint | undefined
}

const brand = Symbol.for('holdfast.LeaseError')

/** The one error class. Told apart by `code`, never by its text. */
export class LeaseError extends Error {
  override readonly name = 'LeaseError'
  readonly code: LeaseErrorCode
  readonly lease: string | undefined
  readonly retryable: boolean
  readonly retryAfter: number | undefined
  readonly holder: LeaseRecord | undefined
  readonly result: unknown
  readonly token: bigint | undefined
  readonly highest: bigint | undefined

  constructor(code: LeaseErrorCode, message: string, options: LeaseErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.lease = options.lease
    this.retryable =
      options.retryable ?? (code === 'STORE_UNAVAILABLE' || code === 'OUTCOME_UNKNOWN' || code === 'ACQUIRE_TIMEOUT')
    this.retryAfter = options.retryAfter
    this.holder = options.holder
    this.result = options.result
    this.token = options.token
    this.highest = options.highest
    Object.defineProperty(this, brand, { value: true })
  }

  /** True for a `LeaseError` of any copy of this package: an application may have two installed. */
  static is(error: unknown): error is LeaseError {
    return typeof error === 'object' && error !== null && brand in error
  }

  toJSON(): Record<string, unknown> {
    return {
      name: this.name,
      code: this.code,
      message: this.message,
      lease: this.lease,
      retryable: this.retryable,
      retryAfter: this.retryAfter,
      holder: this.holder && recordToJSON(this.holder),
      token: this.token?.toString(),
      highest: this.highest?.toString(),
    }
  }
}
