/** What the rules know of a claim. `limit` and `units` belong to its id: the first request that is accepted fixes them. */
export interface Party {
  readonly id: string
  readonly owner: string
  readonly note: string
  /** Milliseconds. */
  readonly ttl: number
  /** Its slots, and all others in use, are below this number. */
  readonly limit: number
}

/** A claim that holds slots of the name until `expires`. */
export interface Holder extends Party {
  readonly token: number
  /** In rising order. */
  readonly slots: readonly number[]
  readonly expires: number
}

/** A claim that waits, and keeps its position until `lapses`. */
export interface Waiter extends Party {
  /** How many slots it wants. */
  readonly units: number
  /** Milliseconds that it gets to ask when it is the first and fits. */
  readonly grace: number
  readonly lapses: number
  /** Did it let its grace period pass? It counts again once it asks. */
  readonly isPassed: boolean
}

/** All that a store keeps of a name. Times are by the clock of the store, in milliseconds. */
export interface NameState {
  readonly holders: readonly Holder[]
  /** In the order of their positions. */
  readonly waiters: readonly Waiter[]
  /** Claims that were withdrawn, and until when each is refused. */
  readonly gone: ReadonlyMap<string, number>
  /** The last token of the name. */
  readonly token: number
  /** When capacity was last freed or a waiter granted, or when another waiter became the first. */
  readonly changed: number
}

/** A name that nobody ever used. */
export const UNUSED: NameState = {
  holders: [],
  waiters: [],
  gone: new Map(),
  token: 0,
  changed: Number.NEGATIVE_INFINITY,
}
