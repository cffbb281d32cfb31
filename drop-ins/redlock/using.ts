import { type Lease, type LeaseSet, subscribe } from '../../src/index.ts'
import type { Lock } from './lock.ts'

/** Aborts when the lock is lost, before another can acquire it. `error` is then the reason. */
export type RedlockAbortSignal = AbortSignal & { error?: Error }

/** What the routine of `using` gets with the signal. */
export interface RedlockUsingContext {
  lock: Lock
  /** Renewals of the lock so far. */
  extensions: number
}

const contexts = new WeakMap<Lease, RedlockUsingContext>()
let isCounting = false

/** The signal of a lease, with the reason as `error`. Reading `aborted` checks the clock. */
export function signalOf(lease: Lease | LeaseSet, errorOf: (reason: unknown) => Error): RedlockAbortSignal {
  const controller = new AbortController()
  const signal = controller.signal as RedlockAbortSignal
  const onLoss = (): void => {
    signal.error = errorOf(lease.signal.reason)
    controller.abort()
  }
  // The process may have been paused since the grant.
  if (lease.signal.aborted) onLoss()
  else lease.signal.addEventListener('abort', onLoss, { once: true })
  Object.defineProperty(signal, 'aborted', {
    get() {
      void lease.signal // may detect a loss
      return Reflect.get(AbortSignal.prototype, 'aborted', signal) as boolean
    },
  })
  return signal
}

/** Counts the renewals of the first lease of a lock. */
export function contextOf(lock: Lock, first: Lease): RedlockUsingContext {
  const context = { lock, extensions: 0 }
  contexts.set(first, context)
  if (!isCounting) subscribe('heartbeat', count)
  isCounting = true
  return context
}

function count({ lease }: { readonly lease: Lease }): void {
  const context = contexts.get(lease)
  if (context) context.extensions += 1
}
