import { LeaseError, type LeaseErrorCode } from '../../contract/errors.ts'
import type { LeaseEvents } from '../../contract/lease-events.ts'
import type { Claim, ClaimKey } from '../../contract/store.ts'
import type { SharedStatistics } from './disruptions.ts'

/** The data that a worker is started with. */
export interface WorkerInput {
  /** The store to open. */
  readonly url: string
  /** Memory of a `Liveness`. */
  readonly liveness: SharedArrayBuffer
  readonly statistics: SharedStatistics
}

/** The name that both threads use for a lease. The slots of one permit have the same id. */
export function idOf({ name, id }: ClaimKey): string {
  return id + name
}

/** From the main thread to the worker. `id`: see `idOf`. */
export type Command =
  | {
      readonly kind: 'hold'
      readonly claim: Claim
      readonly token: bigint
      /** Memory of a `SharedTerm`. */
      readonly term: SharedArrayBuffer
      readonly maxBlocked: number | undefined
      /** Milliseconds after which the lease is no longer renewed. */
      readonly maxHold: number
    }
  /** `from`: the ttl of the lease if this fails. */
  | { readonly kind: 'extend'; readonly id: string; readonly ttl: number; readonly from: number; readonly call: number }
  /** The main thread has given up an extension. The lease keeps this ttl. */
  | { readonly kind: 'keep'; readonly id: string; readonly ttl: number }
  /** The lease is no longer renewed after `maxHold` ms. */
  | { readonly kind: 'limit'; readonly id: string; readonly maxHold: number }
  | { readonly kind: 'annotated'; readonly id: string; readonly note: string }
  /** Sent after `SharedTerm.stop()`. */
  | { readonly kind: 'stop'; readonly id: string }

/** From the worker to the main thread. */
export type Notification =
  /** The store is open, and commands are received. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'renewed'; readonly id: string; readonly latency: number; readonly margin: number }
  | { readonly kind: 'failed'; readonly id: string; readonly error: PlainError }
  /** A renewal was so slow that the ttl may be too short. */
  | { readonly kind: 'slow'; readonly id: string }
  | { readonly kind: 'batch'; readonly event: LeaseEvents['batch_sent'] }
  | { readonly kind: 'refused'; readonly event: LeaseEvents['stale_request_refused'] }
  /** The lease is over. */
  | { readonly kind: 'over'; readonly id: string }
  | { readonly kind: 'extended'; readonly call: number; readonly error: PlainError | undefined }
  /** No renewal is in flight, and none follows. `unsettled`: one was not answered. */
  | { readonly kind: 'stopped'; readonly id: string; readonly unsettled: boolean }

/** A `LeaseError` as plain data. A message between threads keeps only the text of an error's subclass. */
export interface PlainError {
  readonly code: LeaseErrorCode
  readonly message: string
  readonly leaseName: string | undefined
  readonly retryable: boolean
  readonly retryAfter: number | undefined
}

export function plainError({ code, message, leaseName, retryable, retryAfter }: LeaseError): PlainError {
  return { code, message, leaseName, retryable, retryAfter }
}

export function leaseError({ code, message, ...options }: PlainError): LeaseError {
  return new LeaseError(code, message, options)
}
