import { LeaseError } from '../../contract/errors.ts'
import type { BreakParameters, Busy, Claim, ClaimKey, Grant, LeaseRecord } from '../../contract/store.ts'
import { gracePeriod } from '../../contract/time.ts'
import { isFresh } from '../rules/difference.ts'
import { Name } from '../rules/name.ts'
import { holderOf, recordsOf } from '../rules/records.ts'
import type { NameState } from '../rules/state.ts'
import type { Rows } from './rows.ts'

/** A name as it was read, and as it is after the decisions. */
interface Entry {
  read: NameState
  state: NameState
}

/** A hint to a waiter. */
export interface Hint {
  readonly name: string
  readonly id: string
  /** The same value for the same hint. */
  readonly cause: string
  /** Milliseconds until the waiter should ask. */
  readonly delay: number
}

/** The number of names in one read, which takes a few ms. */
const PAGE = 200

/**
 * Milliseconds for which a change of a name wakes its waiters. No position lasts longer. After that the waiters ask by
 * themselves.
 */
const NEWS = 10_000

const LAST_TOKEN = Number.MAX_SAFE_INTEGER

/**
 * The names of a file in one transaction, at one time. `now` is the wall clock in whole milliseconds, read while the file
 * is locked. `save` writes the decisions.
 */
export class Leases {
  readonly #rows: Rows
  readonly #now: number
  readonly #entries = new Map<string, Entry>()
  /** The last token of all names, as it was read and as it is now. */
  #token: { readonly read: number; last: number } | undefined

  constructor(rows: Rows, now: number) {
    this.#rows = rows
    this.#now = now
  }

  /** The answer of `acquire` if it needs no write, which would cost an fsync. Otherwise `undefined`. */
  peek(claim: Claim): Busy | undefined {
    const { state } = this.#entry(claim.name)
    const rules = this.#rules(claim, state)
    const answer = ask(rules, claim)
    return answer.held || !isKept(state, rules.state, this.#now) ? undefined : answer
  }

  acquire(claim: Claim): Grant | Busy {
    return this.#decide(claim, rules => ask(rules, claim))
  }

  renew(claim: Claim): Grant | undefined {
    return this.#decide(claim, rules => {
      const held = rules.renew(claim.id, claim.ttl)
      return held && grant(held, claim)
    })
  }

  annotate(claim: Claim): boolean {
    return this.#decide(claim, rules => rules.annotate(claim.id, claim.note))
  }

  release(key: ClaimKey): 'released' | 'gone' {
    const answer = this.#decide(key, rules => rules.release(key.id))
    if (answer === 'gone') this.#rows.bury(key.name, key.id, this.#now)
    return answer
  }

  break(name: string, { token, slot }: BreakParameters): bigint | undefined {
    const only = { slot, token: token === undefined ? undefined : Number(token) }
    const broken = this.#decide({ name, id: '' }, rules => rules.break(only))
    return broken && BigInt(broken.token)
  }

  /** Writes the decisions. */
  save(): void {
    for (const [name, { read, state }] of this.#entries) {
      this.#rows.save(name, read, state)
      const isNew = read.holders.length + read.waiters.length === 0 && state.holders.length > 0
      for (const ended of isNew ? this.#rows.ended(this.#now) : []) this.#sweep(ended)
    }
    if (this.#token && this.#token.last > this.#token.read) this.#rows.putToken(this.#token.last)
  }

  records(name: string): LeaseRecord[] {
    const rules = new Name(this.#now, this.#rows.state(name))
    return recordsOf(name, rules.state, this.#now)
  }

  /**
   * The records of the names that begin with `prefix`, from the name `from` on, and the name where the next page begins.
   */
  page(prefix: string, from: string): { records: LeaseRecord[]; next: string | undefined } {
    const matching = this.#rows.names(from, PAGE).filter(name => name.startsWith(prefix))
    const last = matching[PAGE - 1]
    const records = matching.flatMap(name => this.records(name))
    return { records, next: last && `${last}\u0001` } // names have no control characters, so no name sorts in between
  }

  /** The waiters to wake because of recent changes, in names that `isWatched` accepts. */
  hints(isWatched: (name: string) => boolean): Hint[] {
    const names = this.#rows.changedSince(this.#now - NEWS).filter(({ name }) => isWatched(name))
    return names.flatMap(({ name, changed }) => {
      const rules = new Name(this.#now, this.#rows.head(name, changed, this.#now))
      const wakes = [...rules.wakes(undefined, true)]
      return wakes.map(([id, delay], rank) => ({ name, id, cause: `${changed} ${rank}`, delay }))
    })
  }

  #decide<Answer>({ name, id }: ClaimKey, decision: (rules: Name) => Answer): Answer {
    const entry = this.#entry(name)
    const rules = this.#rules({ name, id }, entry.state)
    const answer = decision(rules)
    const { state } = rules
    if (state.token > LAST_TOKEN) throw usedUp()
    entry.state = state
    this.#counter.last = state.token
    return answer
  }

  #rules({ name, id }: ClaimKey, state: NameState): Name {
    const gone = this.#rows.gone(name, id)
    return new Name(this.#now, { ...state, gone, token: this.#counter.last }, this.#now * 1_000)
  }

  get #counter(): { last: number } {
    if (this.#token) return this.#token
    const read = this.#rows.token()
    this.#token = { read, last: read }
    return this.#token
  }

  #entry(name: string): Entry {
    const known = this.#entries.get(name)
    if (known) return known
    const state = this.#rows.state(name)
    const entry = { read: state, state }
    this.#entries.set(name, entry)
    return entry
  }

  /** Deletes leases and positions that have ended. */
  #sweep(name: string): void {
    if (this.#entries.has(name)) return
    const state = this.#rows.state(name)
    this.#rows.save(name, state, new Name(this.#now, state).state)
  }
}

function ask(rules: Name, claim: Claim): Grant | Busy {
  const { name, limit = 1, units = 1, roundTrip } = claim
  const answer = rules.acquire({ ...claim, limit, units, grace: gracePeriod(roundTrip) })
  if (answer.held) return grant(answer, claim)
  const { retryAfter, ahead } = answer
  return { held: false, retryAfter, ahead, holder: holderOf(name, rules.state, rules.now) }
}

function grant(held: { readonly token: number; readonly slots: readonly number[] }, { ttl }: Claim): Grant {
  return { held: true, token: BigInt(held.token), ttl, slots: held.slots }
}

/** Have only positions changed that need not be written yet? */
function isKept(before: NameState, after: NameState, now: number): boolean {
  if (after.changed !== before.changed || after.waiters.length !== before.waiters.length) return false
  if (after.holders.length !== before.holders.length) return false
  if (after.holders.some((holder, index) => holder !== before.holders[index])) return false
  return after.waiters.every((waiter, index) => {
    const old = before.waiters[index]
    return waiter === old || (old !== undefined && isFresh(old, waiter, now))
  })
}

function usedUp(): LeaseError {
  const message = `the tokens are used up (${LAST_TOKEN}): the clock of this machine is or was beyond the year 2255, so use a new file`
  return new LeaseError('STORE_UNAVAILABLE', message, { retryable: false })
}
