import type { Takeover } from './store.ts'
import { Timers } from './timers.ts'

/**
 * A process's view of passing time, in milliseconds. Injected everywhere, so that tests and simulations decide it.
 */
export interface Clock {
  /** Milliseconds since a fixed moment. They never go back, and include the time for which the machine was suspended. */
  now(): number
  /** Milliseconds since 1970 by the wall clock. Used for the least token and for people. It never decides who holds. */
  wall(): number
  /**
   * Calls `action` once, after `delay` ms. Returns a function that cancels it. A `background` timer does not keep the
   * process alive.
   */
  after(delay: number, action: () => void, background?: boolean): () => void
}

// Date.now() has a resolution of 1 ms, so it drifts by as much against the monotonic clock. The margin of a deadline
// (1 % + 2 ms) absorbs smaller steps.
const SMALLEST_STEP = 2

// All clocks of a thread share these. Otherwise a store and the core could disagree on what is over, if only one of their
// clocks was read between two steps.
let steps = 0
let reference = Date.now() - performance.now()

/**
 * The clock of this process. The monotonic clock stops while a machine sleeps, and the wall clock can be set back. So
 * elapsed time is the monotonic clock plus every forward step of the wall clock against it.
 */
export function systemClock(): Clock {
  const timers = new Timers()
  return {
    now() {
      // On a busy machine the scheduler may pause this thread between two reads for 100 ms and more. The true difference of
      // the clocks lies between two bounds, for which the monotonic clock is read before and after. A pause widens them and is
      // never counted; a sleep moves both. Usually the first bound says enough: this is called five times for a lease.
      const before = performance.now()
      const wall = Date.now()
      const most = wall - before
      if (most <= reference + SMALLEST_STEP) {
        if (most < reference) reference = most
        return before + steps
      }
      const after = performance.now()
      const least = wall - after
      if (least > reference + SMALLEST_STEP) {
        steps += least - reference
        reference = least
      }
      return after + steps
    },
    wall: () => Date.now(),
    after: (delay, action, background = false) => timers.set(delay, action, background),
  }
}

/**
 * Milliseconds that a request of a claim with this ttl may take. The core waits no longer, and the server does not carry
 * it out later (R3). `share`: `guarantees.acquireShare`, for an `acquire`.
 */
export function requestLimit(ttl: number, share: number = 1 / 3): number {
  return Math.min(LONGEST_REQUEST, ttl * share)
}

/** Milliseconds that a lease lasts unless its caller says otherwise. */
export const DEFAULT_TTL = 10_000

/** The pauses of a candidate for leadership in milliseconds, with their defaults. See `CampaignOptions`. */
export function campaignPauses(given: { pause?: number | undefined; maxPause?: number | undefined }): {
  pause: number
  maxPause: number
} {
  const { pause = 1_000, maxPause = Math.max(pause, 30_000) } = given
  return { pause, maxPause }
}

/** Milliseconds between the last renewal of a holder that died and the next holder, at most. @default the ttl */
export function takeoverTime(ttl: number, takeover: Takeover | undefined): number {
  if (!takeover) return ttl
  const { factor = 1, step = 1, least, extra } = takeover
  return Math.max(Math.ceil((ttl * factor) / step) * step, least) + extra
}

/** The longest limit of a request, in milliseconds. A store remembers a withdrawn claim for at least as long (R4). */
export const LONGEST_REQUEST = 5_000

/** Milliseconds that the last request of a wait or of a withdrawal gets when the time is up. */
export const LAST_REQUEST = 50

/** Milliseconds that a call waits for the store, such as `tryAcquire`, an inspection or a release. */
export const LONGEST_TRY = 2_000

/**
 * The longest sleep in milliseconds, times the position in the queue, of a waiter whose store does not ask for it. Nothing
 * wakes it if the holder shortens its lease and dies, or if a holder with a shorter ttl follows and dies.
 */
export const LONGEST_SLEEP = 5_000

/**
 * The share of a call's time that its first request gets. Each request of a release gets this share of `LONGEST_TRY`. By
 * then a dead connection has been replaced, and the next request uses the new one.
 */
export const FIRST_TRY = 0.7

/** Milliseconds for which a withdrawal in the background keeps the process alive, or `close()` waits for it. */
export const LAST_WITHDRAWAL = 1_000

/** Share of its ttl that a holder gives up because clocks run at different speeds. */
export const DRIFT = 0.01

/** Milliseconds that a holder gives up of its ttl: the drift and 2 ms. */
export function margin(ttl: number): number {
  return ttl * DRIFT + 2
}

/** The grace period in milliseconds, without the round trip. Until it ends, only the first waiter may take a free name. */
export const TURN = 100

/** The most milliseconds that a round trip adds to a grace period. A dead waiter blocks the others for as long. */
export const LONGEST_ROUND_TRIP = 1_000

/** Milliseconds that a waiter whose requests take `roundTrip` gets to ask when it is the first and fits (R8). */
export function gracePeriod(roundTrip: number | undefined): number {
  return TURN + roundTripOf(roundTrip)
}

/** Whole milliseconds that a round trip of `ms` adds to the grace period of a waiter; 0 for an invalid duration. */
export function roundTripOf(ms: number = 0): number {
  return Math.min(Math.max(Math.floor(ms), 0) || 0, LONGEST_ROUND_TRIP)
}
