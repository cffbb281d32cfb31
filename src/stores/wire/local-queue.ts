import { request } from '../../contract/request.ts'
import type { Wake } from '../../contract/store.ts'
import { type Clock, LONGEST_SLEEP, requestLimit, TURN } from '../../contract/time.ts'

/** The largest number of releases in a row that prompt no waiter. */
const MOST_SKIPPED = 15

/** What the server said about a waiter. */
export interface State {
  /**
   * The time when the claim, or the first waiter, may be granted the name if nothing is freed, by the clock of this
   * process.
   */
  readonly grantAt: number
  /** The number of waiters ahead. */
  readonly rank: number
  /** May a release that came meanwhile have missed the position of the claim? @default false */
  readonly isUnseen?: boolean
}

/** What the server said about a name, and about the waiters whose positions it was asked to keep. */
export interface Kept extends State {
  /** The id of the first of these waiters, if the server compared them. `rank` is its position. */
  readonly first: string | undefined
  /** The ids of the waiters that no longer have a position. */
  readonly lost: readonly string[]
}

/** Sends the requests that keep positions. */
export interface Keeper {
  /** The largest number of waiters in one request. */
  readonly most: number
  /** Keeps the positions of these waiters for `lifetime` ms, in one request. Rejects if that cannot be confirmed. */
  keep(name: string, lifetime: number, ids: readonly string[]): Promise<Kept>
}

export interface Waiter {
  readonly id: string
  /** Milliseconds for which the server keeps its position. */
  readonly lifetime: number
  readonly wake: Wake
}

/** The waiters of this process for one name, in the order of their positions. */
export class LocalQueue {
  readonly #name: string
  readonly #clock: Clock
  readonly #keeper: Keeper
  readonly #onEmpty: () => void
  #waiters = new Map<string, Waiter>()
  /** The shortest lifetime of their positions. */
  #lifetime = Number.POSITIVE_INFINITY
  #grantAt = Number.POSITIVE_INFINITY
  /** The position of the first waiter, or a lower number. */
  #rank = 0
  /** The waiters that were woken since one of them may be granted. */
  readonly #woken = new Set<string>()
  /** The times when the next requests are due: to keep all positions, and to read the name. */
  #keepAt = Number.POSITIVE_INFINITY
  #lookAt = 0
  /** May a release have been missed since the last request left? */
  #mayHaveMissed = false
  #isAsking = false
  /** Waiters that were prompted to ask by a release, and have no answer yet. */
  readonly #prompted = new Set<string>()
  /** The number of further releases that prompt no waiter, and its initial value. */
  #skip = 0
  #skipped = 0
  #stopTimer: (() => void) | undefined
  #timerAt = Number.POSITIVE_INFINITY

  /** `onEmpty` is called when the last waiter has left. */
  constructor(name: string, clock: Clock, keeper: Keeper, onEmpty: () => void) {
    this.#name = name
    this.#clock = clock
    this.#keeper = keeper
    this.#onEmpty = onEmpty
  }

  has(id: string): boolean {
    return this.#waiters.has(id)
  }

  /** Adds a waiter behind all others. `state`: what the server said about it. */
  add(waiter: Waiter, state: State | undefined): void {
    if (this.#waiters.size === 0 && state) this.#rank = state.rank
    this.#waiters.set(waiter.id, waiter)
    this.#lifetime = Math.min(this.#lifetime, waiter.lifetime)
    this.#keepAt = Math.min(this.#keepAt, this.#clock.now() + waiter.lifetime / 3)
    if (state) this.learn(state)
    else this.#schedule()
  }

  /** The waiter no longer waits. Another waiter with this id may have been added since. */
  remove(id: string, wake: Wake): void {
    if (this.#waiters.get(id)?.wake !== wake) return
    this.#prompted.delete(id)
    this.#woken.delete(id)
    this.#waiters.delete(id)
    if (this.#waiters.size === 0) this.#end()
    else this.#schedule()
  }

  /** The waiter was granted the name. It may not accept the grant. */
  granted(id: string): void {
    if (this.#prompted.delete(id)) this.#skipped = 0
  }

  /**
   * Wakes the first waiter that was not yet prompted, so that its request shares the call of the release. Call it when this
   * process releases the name. After a busy answer to a prompted waiter, some releases prompt no waiter.
   */
  prompt(): void {
    if (this.#skip > 0) this.#skip -= 1
    else this.#wakeFirst(this.#prompted)
  }

  /**
   * A message to a waiter may be lost, except to those that are `asking`. A prompted waiter asks until it has an answer.
   */
  missed(asking: ReadonlySet<string>): void {
    this.#wakeFirst(asking)
  }

  /** The waiter got a busy answer. */
  refused(id: string): void {
    if (!this.#prompted.delete(id)) return
    this.#skipped = Math.min(2 * this.#skipped + 1, MOST_SKIPPED)
    this.#skip = this.#skipped
  }

  /** The server has said this about the name. */
  learn({ grantAt, rank, isUnseen }: State): void {
    const now = this.#clock.now()
    // Since a waiter could be granted, another claim may have held the name.
    if (grantAt > now) this.#woken.clear()
    // What the server said about a later waiter must not delay those before it.
    const isBehind = rank > this.#rank && this.#grantAt > now
    this.#grantAt = isBehind ? Math.min(grantAt, this.#grantAt) : grantAt
    this.#rank = Math.min(this.#rank, rank)
    this.#lookAt = now + LONGEST_SLEEP * (1 + this.#rank)
    if (isUnseen) this.#mayHaveMissed = true
    this.#schedule()
  }

  /** Wakes all waiters. The queue is not used again. */
  close(): void {
    const waiters = [...this.#waiters.values()]
    this.#end()
    for (const { wake } of waiters) wake()
  }

  /** The time when the first waiter for the name may be granted, or the second may pass it. The server wakes the others. */
  get #turnAt(): number {
    const { size } = this.#woken
    if (size >= this.#waiters.size || this.#rank + size > 1) return Number.POSITIVE_INFINITY
    return this.#grantAt + size * TURN
  }

  get #nextLook(): number {
    return this.#mayHaveMissed ? 0 : this.#lookAt
  }

  #schedule(): void {
    if (this.#waiters.size === 0) return
    const at = Math.min(
      this.#turnAt,
      this.#isAsking ? Number.POSITIVE_INFINITY : Math.min(this.#keepAt, this.#nextLook),
    )
    if (at >= this.#timerAt) return // that timer reads the times again
    this.#stopTimer?.()
    this.#timerAt = at
    this.#stopTimer = this.#clock.after(Math.max(at - this.#clock.now(), 0), () => this.#run(), true)
  }

  #run(): void {
    this.#timerAt = Number.POSITIVE_INFINITY
    const now = this.#clock.now()
    const waiters = [...this.#waiters.values()]
    const next = now >= this.#turnAt ? waiters.find(({ id }) => !this.#woken.has(id)) : undefined
    if (next) this.#woken.add(next.id)
    next?.wake()
    if (!this.#isAsking && now >= this.#keepAt) void this.#ask(waiters)
    else if (!this.#isAsking && now >= this.#nextLook) void this.#ask(waiters.slice(0, 1))
    this.#schedule()
  }

  async #ask(waiters: readonly Waiter[]): Promise<void> {
    this.#isAsking = true
    this.#mayHaveMissed = false
    if (waiters.length === this.#waiters.size) this.#keepAt = this.#clock.now() + this.#lifetime / 3
    try {
      let first: Kept | undefined
      // The requests are sent one after the other, so that each blocks the server only briefly.
      for (const [lifetime, equal] of Map.groupBy(waiters, waiter => waiter.lifetime)) {
        const ids = equal.map(({ id }) => id)
        while (ids.length > 0) {
          const some = ids.splice(0, this.#keeper.most)
          const keep = (): Promise<Kept> => this.#keeper.keep(this.#name, lifetime, some)
          const kept = await request(this.#clock, requestLimit(lifetime), keep, { background: true })
          for (const id of kept.lost) this.#moveBack(id)
          if (!first || kept.rank < first.rank) first = kept
        }
      }
      if (!first) return
      this.#putFirst(first.first)
      this.#rank = first.rank
      this.learn(first)
    } catch {
      // The waiters ask by themselves, and find out the reason.
      for (const { wake } of [...this.#waiters.values()]) wake()
      this.#lookAt = this.#clock.now() + LONGEST_SLEEP
    } finally {
      this.#isAsking = false
      this.#schedule()
    }
  }

  /** Wakes the first waiter that is not in `others`, unless it was prompted. */
  #wakeFirst(others: ReadonlySet<string>): void {
    for (const { id, wake } of this.#waiters.values()) {
      if (others.has(id)) continue
      if (!this.#prompted.has(id)) wake()
      this.#prompted.add(id)
      return
    }
  }

  #end(): void {
    this.#stopTimer?.()
    this.#waiters.clear()
    this.#onEmpty()
  }

  /**
   * Moves a waiter to the end: it gets a new position when it asks, unless it was granted the name and does not know that
   * yet.
   */
  #moveBack(id: string): void {
    const waiter = this.#waiters.get(id)
    if (!waiter) return
    this.#waiters.delete(id)
    this.#waiters.set(id, waiter)
    waiter.wake()
  }

  #putFirst(id: string | undefined): void {
    const waiter = this.#waiters.get(id ?? '')
    const [first] = this.#waiters.values()
    if (waiter && first !== waiter) this.#waiters = new Map([[waiter.id, waiter], ...this.#waiters])
  }
}
