import { LeaseError } from './errors.ts'
import type { Clock } from './time.ts'

/**
 * One reason to stop, for a row of steps of which one is under way at a time: so a wait of many requests adds nothing
 * to anybody's signal but one listener.
 */
export class Cancel {
  #cancelled = false
  #reason: unknown
  #stopStep: ((reason: unknown) => void) | undefined

  get cancelled(): boolean {
    return this.#cancelled
  }

  cancel(reason: unknown): void {
    if (this.#cancelled) return
    this.#cancelled = true
    this.#reason = reason
    this.#stopStep?.(reason)
  }

  throwIfCancelled(): void {
    if (this.#cancelled) throw this.#reason
  }

  /** The step under way is stopped by `stop`; the answer ends that. */
  step(stop: (reason: unknown) => void): () => void {
    this.#stopStep = stop
    return () => {
      if (this.#stopStep === stop) this.#stopStep = undefined // a late answer must not end a later step
    }
  }
}

export interface RequestOptions {
  readonly cancel?: Cancel | undefined
  /** Does the process end although this request is under way? @default false */
  readonly background?: boolean
}

/**
 * Puts one request to a store and waits for at most `limit` ms: then it rejects with `OUTCOME_UNKNOWN`, whatever the
 * client library below still does with it. A cancelled request rejects at once with the reason. Errors of a store
 * that are no `LeaseError` become `STORE_UNAVAILABLE`.
 */
export function request<Answer>(
  clock: Clock,
  limit: number,
  send: (signal: AbortSignal) => Promise<Answer>,
  options: RequestOptions = {},
): Promise<Answer> {
  const { cancel, background } = options
  return new Promise((resolve, reject) => {
    cancel?.throwIfCancelled() // it may have been between two steps
    const controller = new AbortController()
    const fail = (error: unknown): void => {
      done()
      reject(error)
      controller.abort(error)
    }
    const stopTimer = clock.after(
      limit,
      () => fail(new LeaseError('OUTCOME_UNKNOWN', `the store did not answer within ${Math.round(limit)} ms`)),
      background,
    )
    const endStep = cancel?.step(fail)
    const done = (): void => {
      stopTimer()
      endStep?.()
    }
    const call = async (): Promise<Answer> => send(controller.signal) // a synchronous throw rejects as well
    call().then(
      answer => {
        done()
        resolve(answer)
      },
      error => {
        done()
        reject(storeError(error))
      },
    )
  })
}

export interface PauseOptions {
  readonly cancel?: Cancel | undefined
  /** Is given the function that ends the pause early. */
  readonly arm?: (wake: () => void) => void
}

/** Waits `delay` ms. A cancelled pause rejects at once with the reason. */
export function pause(clock: Clock, delay: number, { cancel, arm }: PauseOptions = {}): Promise<void> {
  return new Promise((resolve, reject) => {
    cancel?.throwIfCancelled()
    const wake = (): void => {
      stopTimer()
      endStep?.()
      resolve()
    }
    const stopTimer = clock.after(delay, wake)
    const endStep = cancel?.step(reason => {
      stopTimer()
      reject(reason)
    })
    arm?.(wake)
  })
}

/** Milliseconds before try number `failures` + 1: doubling from 20 up to 1,000, and random, so that crowds spread. */
export function backoff(failures: number, random: () => number): number {
  return Math.min(10 * 2 ** failures, 1_000) * (0.5 + random() / 2)
}

/** What a store failed with, as a `LeaseError`. */
export function storeError(error: unknown): LeaseError {
  if (LeaseError.is(error)) return error
  const text = error instanceof Error ? error.message : String(error)
  return new LeaseError('STORE_UNAVAILABLE', `the store failed: ${text}`, { cause: error })
}
