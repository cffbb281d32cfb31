import { LeaseError } from '../../contract/errors.ts'
import type { BreakParameters, Busy, Claim, ClaimKey, Grant, LeaseRecord } from '../../contract/store.ts'
import { gracePeriod, LONGEST_REQUEST } from '../../contract/time.ts'
import { difference, isFresh } from '../rules/difference.ts'
import { type Held, Name } from '../rules/name.ts'
import { holderOf, recordsOf } from '../rules/records.ts'
import type { Holder, NameState, Waiter } from '../rules/state.ts'
import { FARTHEST_POLL, LONGEST_POLL, pollPause } from '../wire/retry.ts'

/** The row of a name. Times are in ms, by the server's clock. */
export interface Lease {
  readonly holders: readonly Holder[]
  readonly token: number
  readonly changed: number
  /** A number that each write replaces. 0: there is no row yet. */
  readonly stamp: number
}

/** A waiter, which keeps its position until `lapses`. With `gone` it is a withdrawn claim, which is refused until then. */
export interface Place extends Waiter {
  readonly seq: number
  readonly gone: boolean
}

/** The answer to a claim that was withdrawn. */
export const REFUSED: Busy = { held: false, retryAfter: LONGEST_REQUEST }

const LAST_TOKEN = Number.MAX_SAFE_INTEGER

/**
 * A name as it was read at `now`, and what must be written after the decisions by the rules. It sends nothing to the
 * server.
 */
export class Entry {
  readonly name: string
  readonly now: number
  /** The row as it was read. */
  readonly lease: Lease
  /** Is it unknown whether the lease was written? */
  isUnclear: boolean = false
  /** The time after which the lease must not be written. */
  until: number = Number.POSITIVE_INFINITY
  /** The time after which the changes of the next decision must not be written. */
  limit: number = Number.POSITIVE_INFINITY
  /** Milliseconds that a grant takes: the claim reads the name and then writes it. */
  roundTrip: number = 0
  /** The positions to write before the lease, by id. Each must be written by a given time. */
  readonly joins: Map<string, Place & { readonly until: number }> = new Map()
  /** The time by which they were written, by `performance.now()`. */
  joinedAt: number = 0
  /**
   * Positions of other claims from before the clock was set back, which end sooner. `was`: the end that was read. A position
   * that was written or deleted since remains as it is, because its waiter asked again or left.
   */
  readonly capped: (Place & { readonly was: number; readonly until: number })[] = []
  /** Waiters that were passed, to be marked once the lease is written. */
  readonly passed: Place[] = []
  readonly #places: Map<string, Place>
  #state: NameState
  /** Tombstones of claims that were granted all the same, and are released now. */
  readonly #unburied: Place[] = []
  /** Must the lease be written although it has not changed? */
  #isTouched = false

  /** `places` are in the order of the queue. */
  constructor(name: string, now: number, lease: Lease, places: readonly Place[]) {
    this.name = name
    this.now = now
    this.lease = lease
    this.#places = new Map(places.map(place => [place.id, place]))
    // The position of a holder remains if it was locked when the holder was served. A position that had lapsed before the
    // last change does not count as a change.
    const seen = Math.min(lease.changed, now)
    const held = new Set(lease.holders.filter(({ expires }) => expires > now).map(({ id }) => id))
    const waiters = places.filter(({ id, gone, lapses }) => !gone && !held.has(id) && lapses > seen)
    const gone = new Map(places.filter(place => place.gone).map(({ id, lapses }) => [id, lapses]))
    this.#state = { ...lease, waiters, gone }
  }

  /** The state to write. */
  get next(): NameState {
    return this.#state
  }

  /** Must the lease be written? */
  get isChanged(): boolean {
    const { holders, token, changed } = this.#state
    const { lease } = this
    if (this.#isTouched || token !== lease.token || changed !== lease.changed) return true
    return holders.length !== lease.holders.length || holders.some((holder, index) => holder !== lease.holders[index])
  }

  acquire(claim: Claim): Grant | Busy {
    const { id, ttl, limit = 1, units = 1, roundTrip = this.roundTrip, queue } = claim
    if ((this.#state.gone.get(id) ?? 0) > this.now) return REFUSED
    const grace = gracePeriod(roundTrip)
    let isMoving = false
    const answer = this.#decide(rules => {
      const decided = rules.acquire({ ...claim, limit, units, grace })
      isMoving = rules.wakes(undefined, true).size > 0
      return decided
    }, id)
    if (answer.held) return grant(answer, ttl)
    const { ahead } = answer
    const retryAfter = queue ? Math.min(answer.retryAfter, pollAfter(ahead, isMoving)) : answer.retryAfter
    return { held: false, retryAfter, ahead, holder: holderOf(this.name, this.#state, this.now) }
  }

  renew({ id, ttl }: Claim): Grant | undefined {
    const end = this.#endOf(id)
    const answer = this.#decide(rules => rules.renew(id, ttl))
    if (!answer) return undefined
    this.until = Math.min(this.until, end)
    return grant(answer, ttl)
  }

  annotate({ id, note }: Claim): boolean {
    const end = this.#endOf(id)
    const isHeld = this.#decide(rules => rules.annotate(id, note))
    if (isHeld) this.until = Math.min(this.until, end)
    return isHeld
  }

  isWaiting({ id }: ClaimKey): boolean {
    return this.#state.waiters.some(waiter => waiter.id === id && waiter.lapses > this.now)
  }

  /**
   * Withdraws a claim. `hasLeft`: an earlier decision removed it from the queue, and the consequences are not written yet.
   */
  release(key: ClaimKey, hasLeft: boolean): 'released' | 'gone' {
    const { id } = key
    const isKnown = this.isWaiting(key) || this.#endOf(id) > this.now
    const answer = this.#decide(rules => (hasLeft && !isKnown ? 'released' : rules.release(id)))
    const place = this.#places.get(id)
    if (answer === 'released' && place?.gone) this.#unburied.push(place)
    if (answer === 'gone') {
      const [lapses, seq] = [this.now + LONGEST_REQUEST, 0]
      this.#join({ ...NOBODY, id, lapses, seq, gone: true })
      this.#isTouched = true // an acquire that was decided before fails by the stamp; a later one sees the tombstone
    } else if (place && !place.gone) this.#join({ ...place, lapses: Math.min(place.lapses, this.now) }) // as if it lapsed
    return answer
  }

  /** Ends leases. `tokens`: only leases with these tokens, which an earlier decision has ended. */
  break({ token, slot }: Omit<BreakParameters, 'by'>, tokens?: readonly number[]): Broken | undefined {
    const { holders } = this.#state
    const only = tokens?.map(each => ({ token: each })) ?? [
      { slot, token: token === undefined ? token : Number(token) },
    ]
    const broken = this.#decide(rules => only.flatMap(each => rules.break(each) ?? []))
    const last = broken.at(-1)
    if (!last) return undefined
    const ids = broken.flatMap(each => each.ids)
    return { of: holders.filter(({ id }) => ids.includes(id)).map(holder => holder.token), token: BigInt(last.token) }
  }

  records(): LeaseRecord[] {
    return recordsOf(this.name, new Name(this.now, this.#state).state, this.now)
  }

  /** The positions to delete once the lease is written: those of holders, and those that have lapsed. */
  get ended(): Place[] {
    const held = new Set(this.#state.holders.map(({ id }) => id))
    if (held.size === 0) return this.#unburied
    // The tombstone of a holder remains.
    const isOver = ({ id, gone, lapses }: Place): boolean => lapses <= this.now || (held.has(id) && !gone)
    return [...this.#unburied, ...[...this.#places.values()].filter(isOver)]
  }

  /** `asker`: the claim that may join the queue by this decision. */
  #decide<Answer>(decision: (rules: Name) => Answer, asker?: string): Answer {
    const before = this.#state
    const rules = new Name(this.now, before, Math.floor(this.now * 1_000))
    const answer = decision(rules)
    const { state } = rules
    if (state.token > LAST_TOKEN) throw usedUp()
    this.#state = state
    const { added, changed } = difference(before.waiters, state.waiters)
    for (const waiter of added) this.#join({ ...waiter, seq: this.#nextSeq(), gone: false })
    for (const waiter of changed) {
      const old = before.waiters.find(({ id }) => id === waiter.id) as Waiter
      const { seq } = this.#places.get(waiter.id) as Place
      const place = { ...waiter, seq, gone: false }
      if (waiter.id === asker) {
        if (!isFresh(old, waiter, this.now)) this.#join(place)
        continue
      }
      if (waiter.isPassed && !old.isPassed) this.passed.push(place)
      if (waiter.lapses !== old.lapses) {
        this.capped.push({ ...place, was: old.lapses, until: this.limit })
        this.#places.set(place.id, place)
      }
    }
    return answer
  }

  /** The time when the claim's lease ends. */
  #endOf(id: string): number {
    return this.#state.holders.find(holder => holder.id === id)?.expires ?? 0
  }

  #join(place: Place): void {
    this.joins.set(place.id, { ...place, until: this.limit })
    this.#places.set(place.id, place)
  }

  #nextSeq(): number {
    let last = Math.floor(this.now * 1_000) - 1
    for (const { seq } of this.#places.values()) last = Math.max(last, seq)
    return last + 1
  }
}

/** The leases that a break ended. */
interface Broken {
  /** The tokens of these leases. */
  readonly of: readonly number[]
  /** A token that is higher than those. */
  readonly token: bigint
}

const NOBODY = { owner: '', note: '', ttl: 0, limit: 1, units: 1, grace: 0, isPassed: false }

/** Milliseconds in which a crowd moves by one position if its claims fit together, such as readers after a writer. */
const STEP = 6

/** The time until a waiter polls. `isMoving`: the first waiter fits, so the others follow soon. */
function pollAfter(ahead: number, isMoving: boolean): number {
  const position = ahead + 1
  const pause = pollPause()
  const longest = Math.max(FARTHEST_POLL, position * STEP)
  return Math.min(isMoving ? (position * STEP * pause) / LONGEST_POLL : position * pause, longest)
}

function grant({ token, slots }: Held, ttl: number): Grant {
  return { held: true, token: BigInt(token), ttl, slots }
}

function usedUp(): LeaseError {
  const message =
    `the name has used up its tokens: its counter is at ${LAST_TOKEN}. End the holder, delete the row of the name, and ` +
    'begin the next epoch of fences that saw that token (docs/stores/mysql.md)'
  return new LeaseError('STORE_UNAVAILABLE', message, { retryable: false })
}
