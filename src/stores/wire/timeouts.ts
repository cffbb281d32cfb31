import { afterReads as afterReadsOf, within } from '../../contract/request.ts'
import { inRootContext } from '../../contract/root-context.ts'
import { type Clock, LONGEST_REQUEST, systemClock } from '../../contract/time.ts'

/** The signal of requests that are not cancelled. */
export const NEVER: AbortSignal = new AbortController().signal

/** Milliseconds without an answer after which another connection or server is tried. */
export const PATIENCE = 1_000

/** The shortest patience in milliseconds: waiting less is not worth another connection. */
const SHORTEST_PATIENCE = 100

/** The patience for a request that has `limit` ms. It is 100 to 1,000 ms. */
export function patienceFor(limit: number = PATIENCE): number {
  return Math.min(Math.max(limit, SHORTEST_PATIENCE), PATIENCE)
}

/** No answer arrived in time, so it is unknown whether the request was carried out. */
export class NoAnswer extends Error {
  constructor(limit: number) {
    super(`no answer within ${Math.round(limit)} ms`)
  }
}

/** The clock of this process, without the time for which the machine slept. */
const CLOCK: Pick<Clock, 'now' | 'after'> = { now: () => performance.now(), after: systemClock().after }

/** Calls `action` after `delay` ms, as `afterReads` of the contract. The timer does not keep the process alive. */
export function afterReads(delay: number, action: () => void): () => void {
  return afterReadsOf(CLOCK, delay, action, true)
}

/** Settles like `answer`, or rejects `NoAnswer` after `limit` ms. The timer does not keep the process alive. */
export function inTime<Answer>(answer: Promise<Answer>, limit: number = LONGEST_REQUEST): Promise<Answer> {
  return within(CLOCK, limit, answer, () => Promise.reject(new NoAnswer(limit)), true)
}

/** One timer for all requests in flight on a connection or to a server. It runs only while `check` asks for it. */
export class FlightTimer {
  readonly #check: (now: number) => number
  readonly #clock: Pick<Clock, 'now' | 'after'>
  #at = Number.POSITIVE_INFINITY
  #stop: () => void = () => {}

  /** `check` handles the requests that are overdue at `now`. It returns the time of the next check, or `Infinity`. */
  constructor(check: (now: number) => number, clock: Pick<Clock, 'now' | 'after'> = CLOCK) {
    this.#check = check
    this.#clock = clock
  }

  /** Checks at this time, unless an earlier check is due. */
  watch(time: number): void {
    if (time >= this.#at) return
    this.#stop()
    this.#at = time
    const check = (): void => {
      this.#at = Number.POSITIVE_INFINITY
      this.watch(this.#check(this.#clock.now()))
    }
    const delay = Math.max(time - this.#clock.now(), 0)
    this.#stop = inRootContext(() => afterReadsOf(this.#clock, delay, check, true))
  }

  stop(): void {
    this.#stop()
    this.#at = Number.POSITIVE_INFINITY
  }
}
