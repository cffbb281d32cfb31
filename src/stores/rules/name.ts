import { LONGEST_REQUEST } from '../../contract/time.ts'
import type { Holder, NameState, Party, Waiter } from './state.ts'

/** A request for the name. */
export interface Asker extends Party {
  readonly units: number
  readonly grace: number
  /** May it join the queue? */
  readonly queue: boolean
}

/** The claim holds. */
export interface Held {
  readonly held: true
  readonly token: number
  readonly slots: readonly number[]
}

/** The claim does not hold. */
export interface Refusal {
  readonly held: false
  /** Milliseconds until the claim asks again if nothing wakes it. */
  readonly retryAfter: number
  /** The number of waiters that count before it. */
  readonly ahead: number
}

/** Hints to waiters: the ids of their claims, and the milliseconds after which each asks. */
export type Wakes = ReadonlyMap<string, number>

/**
 * The rules of one name, and their specification: no slot is used twice, and every slot in use is below every limit in use.
 * An object is the state of the name at `now`. Each method decides one request and changes the state, without a clock and
 * without input or output. The entries of a state are never changed in place, so a store finds what to write by comparing.
 *
 * Waiters are served in the order in which they came, by these rules:
 *
 * 1. A claim is granted if it fits in addition to the holders, and no waiter counts before it.
 * 2. It may pass one waiter that also fits and did not ask within its grace period, counted from `changed`. That waiter
 *    keeps its position, and counts again once it asks.
 * 3. If the first waiter does not fit, no waiter behind it is granted. So a writer or a claim for many slots is served.
 * 4. A claim that does not queue comes after all waiters.
 */
export class Name {
  readonly now: number
  #holders: readonly Holder[]
  #waiters: readonly Waiter[]
  readonly #gone: Map<string, number>
  #token: number
  #changed: number
  readonly #floor: number
  /** Must the first waiters be woken? */
  #isChanged = false
  #hasNewSecond = false

  /** `floor`: the lowest number for a new token. */
  constructor(now: number, { holders, waiters, gone, token, changed }: NameState, floor = 0) {
    this.now = now
    this.#floor = floor
    this.#token = token
    this.#changed = Math.min(changed, now) // the clock may have been set back
    // A lease or position that ends later than a full lifetime from now was written before the clock was set back.
    this.#holders = holders.map(each => {
      return each.expires > now + each.ttl + 1 ? { ...each, expires: now + each.ttl } : each
    })
    this.#waiters = waiters.map(each => {
      const longest = now + positionLifetime(each.ttl)
      return each.lapses > longest + 1 ? { ...each, lapses: longest } : each
    })
    this.#gone = new Map([...gone].filter(([, until]) => until > now))
    this.#endHolders(({ expires }) => expires <= now)
    this.#removeWaiters(({ lapses }) => lapses <= now)
  }

  get state(): NameState {
    const [holders, waiters, gone, token, changed] = [
      this.#holders,
      this.#waiters,
      this.#gone,
      this.#token,
      this.#changed,
    ]
    return { holders, waiters, gone, token, changed }
  }

  /**
   * The waiters to wake after the decisions, except the one with the id `answered`. With `isChanged`, this also includes
   * earlier decisions of others.
   */
  wakes(answered?: string, isChanged: boolean = this.#isChanged): Wakes {
    const wakes = new Map<string, number>()
    const [first, second] = this.#counted
    if (!first || !this.#fits(first)) return wakes
    if (isChanged) wakes.set(first.id, 0)
    if (second && (isChanged || this.#hasNewSecond))
      wakes.set(second.id, Math.max(this.#changed + first.grace - this.now, 0))
    if (answered !== undefined) wakes.delete(answered)
    return wakes
  }

  acquire(asker: Asker): Held | Refusal {
    const { id, ttl } = asker
    if (this.#gone.has(id)) return { held: false, retryAfter: LONGEST_REQUEST, ahead: 0 }
    const own = this.#holders.find(holder => holder.id === id)
    // A copy of the request must not shorten a lease that a renewal has extended since.
    if (own) return this.#prolong(own, Math.max(own.expires, this.now + ttl))
    const at = this.#waiters.findIndex(waiter => waiter.id === id)
    const claim = { ...asker, ...this.#termsOf(at) }
    const ahead = this.#waiters.filter(({ isPassed }, index) => !isPassed && (at < 0 || index < at))
    if (this.#fits(claim) && this.#mayPass(ahead)) return this.#grant(claim, at, ahead)
    if (asker.queue) this.#wait(claim, at)
    return { held: false, retryAfter: this.#retryAfter(asker, ahead), ahead: ahead.length }
  }

  /** Renews a lease. `undefined`: the claim does not hold. */
  renew(id: string, ttl: number): Held | undefined {
    const own = this.#holders.find(holder => holder.id === id)
    return own && this.#prolong(own, this.now + ttl)
  }

  annotate(id: string, note: string): boolean {
    const own = this.#holders.find(holder => holder.id === id)
    if (own) this.#replace(own, { ...own, note })
    return own !== undefined
  }

  /** Withdraws a claim. A claim that neither holds nor waits is refused as long as a request of it may still arrive. */
  release(id: string): 'released' | 'gone' {
    const holds = this.#endHolders(holder => holder.id === id)
    if (this.#removeWaiters(waiter => waiter.id === id) || holds) return 'released'
    this.#gone.set(id, this.now + LONGEST_REQUEST)
    return 'gone'
  }

  /**
   * Ends the leases of all holders, or only the lease that has `slot` or `token`. Returns the ids of their claims, and a
   * token that is higher than theirs. `undefined`: no lease ended.
   */
  break(
    only: { readonly slot?: number | undefined; readonly token?: number | undefined } = {},
  ): { readonly ids: readonly string[]; readonly token: number } | undefined {
    const ended = this.#holders.filter(({ slots, token }) => {
      return (only.slot === undefined || slots.includes(only.slot)) && (only.token ?? token) === token
    })
    if (ended.length === 0) return undefined
    const ids = ended.map(({ id }) => id)
    this.#endHolders(({ id }) => ids.includes(id))
    return { ids, token: this.#nextToken() }
  }

  /** Keeps the positions of waiters whose store asks for them. Returns the ids of those that have none. */
  keep(ids: readonly string[]): readonly string[] {
    const kept = new Set(ids)
    this.#waiters = this.#waiters.map(waiter => (kept.delete(waiter.id) ? this.#asking(waiter) : waiter))
    return [...kept]
  }

  /** The waiters that were not passed, in order. */
  get #counted(): readonly Waiter[] {
    return this.#waiters.filter(({ isPassed }) => !isPassed)
  }

  #mayPass([first, ...others]: readonly Waiter[]): boolean {
    if (!first) return true
    return others.length === 0 && this.#fits(first) && this.now >= this.#changed + first.grace
  }

  #fits({ limit, units }: { readonly limit: number; readonly units: number }): boolean {
    return this.#freeSlots(limit, units) !== undefined
  }

  /** The lowest free slots. `undefined`: too few slots are free below every limit in use. */
  #freeSlots(limit: number, units: number): number[] | undefined {
    const used = new Set<number>()
    let least = limit
    for (const holder of this.#holders) {
      least = Math.min(least, holder.limit)
      for (const slot of holder.slots) used.add(slot)
    }
    for (const slot of used) if (slot >= limit) return undefined
    if (least - used.size < units) return undefined
    const free: number[] = []
    for (let slot = 0; free.length < units; slot += 1) if (!used.has(slot)) free.push(slot)
    return free
  }

  #termsOf(at: number): { limit?: number; units?: number } {
    const waiter = this.#waiters[at]
    return waiter ? { limit: waiter.limit, units: waiter.units } : {}
  }

  #grant({ id, owner, note, ttl, limit, units }: Asker, at: number, ahead: readonly Waiter[]): Held {
    const slots = this.#freeSlots(limit, units) as number[]
    const token = this.#nextToken()
    this.#holders = [...this.#holders, { id, owner, note, ttl, limit, token, slots, expires: this.now + ttl }]
    const [passed] = ahead
    if (passed) this.#waiters = this.#waiters.map(each => (each === passed ? { ...each, isPassed: true } : each))
    if (at >= 0) {
      this.#waiters = this.#waiters.filter(waiter => waiter.id !== id)
      this.#change() // the next waiter is woken, and its grace period begins now
    }
    return { held: true, token, slots }
  }

  #wait(claim: Asker, at: number): void {
    const { id, owner, note, ttl, limit, units, grace } = claim
    const waiter = this.#asking({ id, owner, note, ttl, limit, units, grace })
    this.#waiters = at < 0 ? [...this.#waiters, waiter] : this.#waiters.with(at, waiter)
  }

  /** A waiter with its position and a full lifetime from now. */
  #asking(waiter: Omit<Waiter, 'lapses' | 'isPassed'>): Waiter {
    return { ...waiter, lapses: this.now + positionLifetime(waiter.ttl), isPassed: false }
  }

  /**
   * The time until the next request: the earliest time at which the answer may be different, or in time to keep the
   * position.
   */
  #retryAfter({ ttl, queue }: Asker, ahead: readonly Waiter[]): number {
    const { now } = this
    let delay = queue ? positionLifetime(ttl) / 3 : Number.POSITIVE_INFINITY
    for (const { expires } of this.#holders) delay = Math.min(delay, expires - now)
    for (const { lapses } of ahead) delay = Math.min(delay, lapses - now)
    const [first, ...others] = ahead
    if (first && others.length === 0 && this.#fits(first)) {
      const left = this.#changed + first.grace - now
      if (left > 0) delay = Math.min(delay, left) // otherwise it does not fit itself
    }
    return Math.max(delay, 1)
  }

  #prolong(own: Holder, expires: number): Held {
    this.#replace(own, { ...own, ttl: Math.ceil(expires - this.now), expires })
    return { held: true, token: own.token, slots: own.slots }
  }

  #replace(own: Holder, by: Holder): void {
    this.#holders = this.#holders.map(each => (each === own ? by : each))
  }

  #endHolders(ends: (holder: Holder) => boolean): boolean {
    const left = this.#holders.filter(holder => !ends(holder))
    const hasEnded = left.length < this.#holders.length
    this.#holders = left
    if (hasEnded) this.#change()
    return hasEnded
  }

  /**
   * Removes waiters. Only a new first waiter begins a new grace period, because the waiters behind it come and go all the
   * time.
   */
  #removeWaiters(ends: (waiter: Waiter) => boolean): boolean {
    const [first, second] = this.#counted
    const left = this.#waiters.filter(waiter => !ends(waiter))
    const hasEnded = left.length < this.#waiters.length
    this.#waiters = left
    if (first !== this.#counted[0]) this.#change()
    else if (second !== this.#counted[1]) this.#hasNewSecond = true
    return hasEnded
  }

  #change(): void {
    this.#changed = this.now
    this.#isChanged = true
  }

  #nextToken(): number {
    this.#token = Math.max(this.#token + 1, this.#floor)
    return this.#token
  }
}

/** Milliseconds for which a position is kept after the last request of its waiter. The waiter asks after a third of that. */
export function positionLifetime(ttl: number): number {
  return Math.min(Math.max(ttl, 1_000), 5_000)
}
