import { LeaseError, type LeaseErrorCode } from '../../contract/errors.ts'
import type { LeaseEvents } from '../../contract/events.ts'
import type { Claim } from '../../contract/store.ts'
import type { SharedPulse } from '../advice/pulse.ts'

/** What a worker is started with. */
export interface Assignment {
  /** The store to open. */
  readonly url: string
  /** Of a `Liveness`. */
  readonly liveness: SharedArrayBuffer
  readonly pulse: SharedPulse
}

/** From the main thread. `id` is that of the claim. */
export type Order =
  | {
      readonly kind: 'hold'
      readonly claim: Claim
      readonly token: bigint
      /** Of a `SharedTerm` that says what remains. */
      readonly term: SharedArrayBuffer
      readonly livenessLimit: number | undefined
      /** Milliseconds after which it is renewed no more. */
      readonly maxHold: number
    }
  | { readonly kind: 'extend'; readonly id: string; readonly ttl: number; readonly call: number }
  | { readonly kind: 'annotated'; readonly id: string; readonly note: string }
  | { readonly kind: 'stop'; readonly id: string }

/** To the main thread. */
export type News =
  /** The store is open, and orders are heard. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'renewed'; readonly id: string; readonly latency: number; readonly margin: number }
  | { readonly kind: 'failed'; readonly id: string; readonly error: PlainError }
  /** A renewal was so slow that the ttl may be too short. */
  | { readonly kind: 'slow'; readonly id: string }
  | { readonly kind: 'batch'; readonly event: LeaseEvents['batch_sent'] }
  | { readonly kind: 'ghost'; readonly event: LeaseEvents['ghost_refused'] }
  /** The lease is over. */
  | { readonly kind: 'over'; readonly id: string }
  | { readonly kind: 'extended'; readonly call: number; readonly error: PlainError | undefined }
  /** No renewal is under way, and none will be. `unsettled`: one went unanswered. */
  | { readonly kind: 'stopped'; readonly id: string; readonly unsettled: boolean }

/** A `LeaseError` as it passes between threads, which leave nothing but the message of an error's subclass. */
export interface PlainError {
  readonly code: LeaseErrorCode
  readonly message: string
  readonly lease: string | undefined
  readonly retryable: boolean
  readonly retryAfter: number | undefined
}

export function plainError({ code, message, lease, retryable, retryAfter }: LeaseError): PlainError {
  return { code, message, lease, retryable, retryAfter }
}

export function leaseError({ code, message, ...options }: PlainError): LeaseError {
  return new LeaseError(code, message, options)
}
