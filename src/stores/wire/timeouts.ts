import { inRootContext } from '../../contract/root-context.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'

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

/**
 * Calls `action` after `delay` ms. Answers that arrived while the event loop was blocked are read first, so that they do
 * not count as missing. Returns a function that cancels this. The timer does not keep the process alive.
 */
export function afterReads(delay: number, action: () => void): () => void {
  let immediate: NodeJS.Immediate | undefined
  const timer = setTimeout(() => {
    immediate = setImmediate(action)
  }, delay).unref()
  return () => {
    clearTimeout(timer)
    clearImmediate(immediate)
  }
}

/** Settles like `answer`, or rejects `NoAnswer` after `limit` ms. The timer does not keep the process alive. */
export async function within<Answer>(answer: Promise<Answer>, limit: number = LONGEST_REQUEST): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const error = new NoAnswer(limit)
    timer = setTimeout(() => reject(error), limit).unref()
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}

/** One timer for all requests in flight on a connection or to a server. It runs only while `check` asks for it. */
export class FlightTimer {
  readonly #check: (now: number) => number
  readonly #after: typeof afterReads
  readonly #now: () => number
  #at = Number.POSITIVE_INFINITY
  #stop: () => void = () => {}

  /**
   * `check` handles the requests that are overdue at `now`. It returns the time of the next check, or `Infinity`. `after`
   * and `now` replace the clock of the process, for example in a simulation.
   */
  constructor(
    check: (now: number) => number,
    after: typeof afterReads = afterReads,
    now: () => number = () => performance.now(),
  ) {
    this.#check = check
    this.#after = after
    this.#now = now
  }

  /** Checks at this time, unless an earlier check is due. */
  watch(time: number): void {
    if (time >= this.#at) return
    this.#stop()
    this.#at = time
    const check = (): void => {
      this.#at = Number.POSITIVE_INFINITY
      this.watch(this.#check(this.#now()))
    }
    this.#stop = inRootContext(() => this.#after(Math.max(time - this.#now(), 0), check))
  }

  stop(): void {
    this.#stop()
    this.#at = Number.POSITIVE_INFINITY
  }
}
