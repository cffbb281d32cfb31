import { Timers } from './timers.ts'

/**
 * A process's view of passing time, in milliseconds. Injected everywhere, so that tests and simulations decide it.
 */
export interface Clock {
  /** Elapsed time since some fixed moment. Never goes back; counts the time that a suspended machine slept. */
  now(): number
  /** Milliseconds since 1970 by the wall clock. Only for token floors and for people, never to decide who holds. */
  wall(): number
  /**
   * Calls `action` after `delay` ms, once, and answers how to call that off. A `background` timer does not keep the
   * process alive.
   */
  after(delay: number, action: () => void, background?: boolean): () => void
}

// Date.now() has a resolution of 1 ms, so that it wanders by as much against the monotonic clock; the margin of a
// deadline (1 % + 2 ms) absorbs a step below this.
const SMALLEST_STEP = 2

// One for all clocks of a thread: a store whose clock had counted a step, and a core whose clock had not since it was not
// read between two of them, would disagree on what is over.
let steps = 0
let reference = Date.now() - performance.now()

/**
 * The clock of this process. The monotonic clock stops while a machine sleeps and the wall clock can be set back, so
 * elapsed time is the monotonic clock plus every forward step of the wall clock against it.
 */
export function systemClock(): Clock {
  const timers = new Timers()
  return {
    now() {
      // On a busy machine the scheduler may pause this thread between two reads for 100 ms and more. The true difference of
      // the clocks lies between these bounds. A pause widens them and is never counted; a sleep moves both.
      const before = performance.now()
      const wall = Date.now()
      const after = performance.now()
      const least = wall - after
      const most = wall - before
      if (least > reference + SMALLEST_STEP) {
        steps += least - reference
        reference = least
      } else if (most < reference) reference = most
      return after + steps
    },
    wall: () => Date.now(),
    after: (delay, action, background = false) => timers.set(delay, action, background),
  }
}

/** No request of a claim with this ttl is waited for longer, and none may be carried out later. */
export function requestLimit(ttl: number): number {
  return Math.min(LONGEST_REQUEST, ttl / 3)
}

/** Milliseconds; thereby also the least time for which a withdrawn claim must be remembered. */
export const LONGEST_REQUEST = 5_000

/** Milliseconds that the last request of a wait or of a withdrawal may take when its time is over. */
export const LAST_REQUEST = 50

/** Milliseconds that a call waits for the store if it makes one attempt: a try, an inspection, a release. */
export const LONGEST_TRY = 2_000

/** Milliseconds that a withdrawal in the background may keep the process alive, or `close()` waiting. */
export const LAST_WITHDRAWAL = 1_000

/** Share of its ttl that a holder gives up for clocks that run at different speeds. */
export const DRIFT = 0.01

/** What a holder gives up of its ttl: for drift, and 2 ms. */
export function margin(ttl: number): number {
  return ttl * DRIFT + 2
}

/** Grace period, in milliseconds: a released name is offered to the first waiter alone for so long, then to the second too. */
export const TURN = 100
