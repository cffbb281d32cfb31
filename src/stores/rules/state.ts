/**
 * What the rules know about a claim. `limit` and `units` belong to its id: the first request that is accepted fixes them.
 */
export interface Party {
  readonly id: string
  readonly owner: string
  readonly note: string
  /** The ttl in milliseconds. */
  readonly ttl: number
  /** The number that its slots, and all other slots in use, are below. */
  readonly limit: number
}

/** A claim that holds slots of the name until `expires`. */
export interface Holder extends Party {
  readonly token: number
  /** Its slots in rising order. */
  readonly slots: readonly number[]
  readonly expires: number
}

/** A claim that waits, and keeps its position until `lapses`. */
export interface Waiter extends Party {
  /** The number of slots that it wants. */
  readonly units: number
  /** The grace period: milliseconds in which it must ask once it is the first and fits. */
  readonly grace: number
  readonly lapses: number
  /** Did it let its grace period pass? It counts again once it asks. */
  readonly isPassed: boolean
}

/** Everything that a store keeps of a name. Times are in milliseconds, by the clock of the store. */
export interface NameState {
  readonly holders: readonly Holder[]
  /** The waiters in the order of their positions. */
  readonly waiters: readonly Waiter[]
  /** The claims that were withdrawn, and the time until which each is refused. */
  readonly gone: ReadonlyMap<string, number>
  /** The last token of the name. */
  readonly token: number
  /** The time when capacity was last freed, a waiter was granted, or another waiter became the first. */
  readonly changed: number
}

/** The state of a name that nobody has used. */
export const UNUSED: NameState = {
  holders: [],
  waiters: [],
  gone: new Map(),
  token: 0,
  changed: Number.NEGATIVE_INFINITY,
}
