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

  /** The step under way is stopped by `stop`, until `endStep`. */
  step(stop: (reason: unknown) => void): void {
    this.#stopStep = stop
  }

  endStep(stop: (reason: unknown) => void): void {
    if (this.#stopStep === stop) this.#stopStep = undefined // a late answer must not end a later step
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
    const end = (): void => {
      stopTimer()
      cancel?.endStep(stop)
    }
    const stop = (error: unknown): void => {
      end()
      reject(error)
      controller.abort(error)
    }
    const giveUp = (): void =>
      stop(new LeaseError('OUTCOME_UNKNOWN', `the store did not answer within ${Math.round(limit)} ms`))
    // Answers that came while the event loop was blocked are read before they count as missing.
    const isOver = (): void => {
      stopTimer = clock.after(0, giveUp, background)
    }
    let stopTimer = clock.after(limit, isOver, background)
    cancel?.step(stop)
    call(send, controller.signal).then(
      answer => {
        end()
        resolve(answer)
      },
      error => {
        end()
        reject(storeError(error))
      },
    )
  })
}

/** A store that throws at once, or that answers without a promise, is as good as another. */
function call<Answer>(send: (signal: AbortSignal) => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
  try {
    return Promise.resolve(send(signal))
  } catch (error) {
    return Promise.reject(error)
  }
}

export interface PauseOptions {
  readonly cancel?: Cancel | undefined
  /** Is given the function that ends the pause early. */
  readonly arm?: (wake: () => void) => void
  /** May the process end before this pause is over? @default false */
  readonly background?: boolean
}

/** Waits `delay` ms. A cancelled pause rejects at once with the reason. */
export function pause(clock: Clock, delay: number, options: PauseOptions = {}): Promise<void> {
  const { cancel, arm, background } = options
  return new Promise((resolve, reject) => {
    cancel?.throwIfCancelled()
    const wake = (): void => {
      stopTimer()
      cancel?.endStep(stop)
      resolve()
    }
    const stop = (reason: unknown): void => {
      stopTimer()
      reject(reason)
    }
    const stopTimer = clock.after(delay, wake, background)
    cancel?.step(stop)
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
