import { LeaseError, messageOf } from './errors.ts'
import type { Clock } from './time.ts'

/** The advice in messages about a server that does not answer. */
export const CHECK = ': check its address, and that it runs'

/** Cancels a series of steps, one at a time. So a wait of many requests adds one listener to the caller's signal. */
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

  /** Until `endStep`, `cancel` calls `stop`. */
  step(stop: (reason: unknown) => void): void {
    this.#stopStep = stop
  }

  endStep(stop: (reason: unknown) => void): void {
    if (this.#stopStep === stop) this.#stopStep = undefined // a late answer must not end a later step
  }
}

export interface RequestOptions {
  readonly cancel?: Cancel | undefined
  /** May the process end before the answer? @default false */
  readonly background?: boolean
}

/**
 * Sends one request to a store. After `limit` ms it rejects with `OUTCOME_UNKNOWN`, even if the client library still
 * works on it. A cancelled request rejects at once with the reason. An error that is no `LeaseError` becomes
 * `STORE_UNAVAILABLE`.
 */
export function request<Answer>(
  clock: Clock,
  limit: number,
  send: (signal: AbortSignal) => Promise<Answer>,
  options: RequestOptions = {},
): Promise<Answer> {
  const { cancel, background } = options
  return new Promise((resolve, reject) => {
    cancel?.throwIfCancelled() // the cancellation may have come between two steps
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
      stop(new LeaseError('OUTCOME_UNKNOWN', `the store did not answer within ${Math.round(limit)} ms${CHECK}`))
    const stopTimer = afterReads(clock, limit, giveUp, background)
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

/**
 * Settles like `answer`, or like `late()` after `limit` ms. Unlike `request` it makes no signal, which takes a fifth of the
 * time of a pair over memory. `background`: may the process end before?
 */
export function within<Answer, Late = Answer>(
  clock: Pick<Clock, 'after'>,
  limit: number,
  answer: Promise<Answer>,
  late: () => Late | Promise<Late>,
  background = false,
): Promise<Answer | Late> {
  return new Promise((resolve, reject) => {
    const stopTimer = afterReads(clock, limit, () => resolve(late()), background)
    answer.then(
      value => {
        stopTimer()
        resolve(value)
      },
      error => {
        stopTimer()
        reject(error)
      },
    )
  })
}

/**
 * Calls `action` after `delay` ms. Answers that came while the event loop was blocked are read first, so that they do not
 * count as missing. Returns a function that cancels this. `background`: may the process end before?
 */
export function afterReads(
  clock: Pick<Clock, 'after'>,
  delay: number,
  action: () => void,
  background = false,
): () => void {
  const read = (): void => {
    stop = clock.after(0, action, background)
  }
  let stop = clock.after(delay, read, background)
  return () => stop()
}

/** Calls the store. Accepts stores that throw synchronously or return a plain value. */
function call<Answer>(send: (signal: AbortSignal) => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
  try {
    return Promise.resolve(send(signal))
  } catch (error) {
    return Promise.reject(error)
  }
}

interface PauseOptions extends RequestOptions {
  /** Called with the function that ends the pause early. */
  readonly arm?: (wake: () => void) => void
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

/** Milliseconds between attempts: the first pause, and the longest. */
export type Pauses = readonly [shortest: number, longest: number]

/**
 * Milliseconds to wait after this many failures in a row. The pause doubles with each of them and is random, so that
 * clients spread.
 */
export function backoff(failures: number, random: () => number = Math.random, pauses: Pauses = [20, 1_000]): number {
  const [shortest, longest] = pauses
  return Math.min(shortest * 2 ** (failures - 1), longest) * (0.5 + random() / 2)
}

/** Converts the error of a store to a `LeaseError`. */
export function storeError(error: unknown): LeaseError {
  if (LeaseError.is(error)) return error
  return new LeaseError('STORE_UNAVAILABLE', `the store failed: ${messageOf(error)}`, { cause: error })
}
