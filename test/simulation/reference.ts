import type { Busy, Claim, ClaimKey, Grant } from '../../src/contract/store.ts'
import { TURN } from '../../src/contract/time.ts'
import { Name } from '../../src/stores/rules/name.ts'
import { type Holder, type NameState, UNUSED } from '../../src/stores/rules/state.ts'

interface Entry {
  readonly state: NameState
  freeSince: number
  /** Did its last holder release it, so that a waiter was woken? */
  wasReleased: boolean
  /** By the id of a waiter: since when it waits. */
  readonly since: Map<string, number>
}

/**
 * What the rules say of each request to the server, to check its answers. It gets all requests and replies in order, and
 * calls `fail` for each violation. After one it goes on with what the server did.
 */
export class Reference {
  readonly #fail: (what: string) => void
  readonly #entries = new Map<string, Entry>()

  constructor(fail: (what: string) => void) {
    this.#fail = fail
  }

  /** For a new grant, returns how long the name had been free while the claim waited, and why. */
  acquired(claim: Claim, answer: Grant | Busy, now: number): { idle: number; wasReleased: boolean } | undefined {
    const { name, id, ttl, limit = 1, units = 1 } = claim
    const entry = this.#at(name, now)
    const { holders, gone, token } = entry.state
    const own = holders.find(holder => holder.id === id)
    const rules = new Name(now, entry.state)
    const expected = rules.acquire({ ...claim, limit, units, grace: TURN })
    if (!answer.held) {
      if (!gone.has(id)) {
        if (own) this.#fail(`${name}: a holder was refused its own lease`)
        else if (expected.held) this.#fail(`${name}: a claim was refused a name that is free and its turn`)
        else if (answer.ahead !== expected.ahead)
          this.#fail(`${name}: ${expected.ahead} wait before a claim, and it was told ${answer.ahead}`)
        if (Number(answer.holder?.token ?? 0n) !== (holders[0]?.token ?? 0))
          this.#fail(`${name}: another holder was named`)
      }
      if (claim.queue && !entry.since.has(id)) entry.since.set(id, now)
      if (!expected.held) this.#put(name, { ...entry, state: rules.state })
      return undefined
    }
    if (gone.has(id)) this.#fail(`${name}: a claim was granted after it was withdrawn`)
    if (answer.ttl < ttl) this.#fail(`${name}: less was granted than was asked for`)
    if (own && answer.token !== BigInt(own.token)) this.#fail(`${name}: the token of a lease changed`)
    if (!own && holders.length > 0) this.#fail(`${name}: granted while another holds`)
    else if (!expected.held)
      this.#fail(`${name}: granted before ${expected.ahead} who wait, ${now - entry.freeSince} ms after it fell free`)
    if (!own && answer.token <= token) this.#fail(`${name}: token ${answer.token} was given after ${token}`)
    const last = Math.max(token, Number(answer.token))
    const granted: Holder = { ...claim, limit, token: Number(answer.token), slots: [0], expires: now + ttl }
    const { state } = rules
    // The server chooses the token.
    const held = expected.held
      ? state.holders.map(each => (each.id === id ? { ...each, token: last } : each))
      : [granted]
    this.#put(name, { ...entry, state: { ...state, token: last, holders: held } })
    const since = entry.since.get(id) ?? now
    entry.since.delete(id)
    return own ? undefined : { idle: now - Math.max(since, entry.freeSince), wasReleased: entry.wasReleased }
  }

  renewed({ name, id, ttl }: Claim, answer: Grant | undefined, now: number): void {
    const entry = this.#at(name, now)
    const rules = new Name(now, entry.state)
    const expected = rules.renew(id, ttl)
    if ((expected !== undefined) !== (answer !== undefined))
      this.#fail(`${name}: a renewal was ${answer ? 'granted to who holds no more' : 'refused to the holder'}`)
    if (expected && answer && answer.token !== BigInt(expected.token))
      this.#fail(`${name}: the token of a lease changed by renewal`)
    this.#put(name, { ...entry, state: rules.state })
  }

  /** A request of another kind saw the name. */
  seen(name: string, now: number): void {
    this.#put(name, this.#at(name, now))
  }

  released({ name, id }: ClaimKey, answer: 'released' | 'gone', now: number): void {
    const entry = this.#at(name, now)
    const rules = new Name(now, entry.state)
    if (rules.release(id) !== answer) this.#fail(`${name}: a release was answered ${answer}`)
    entry.since.delete(id)
    this.#freed(name, entry, rules.state, now)
  }

  /** `of`: the token of the lease that was to end; `undefined`: of any. */
  broken(name: string, of: bigint | undefined, token: bigint | undefined, now: number): void {
    const entry = this.#at(name, now)
    const rules = new Name(now, entry.state)
    const expected = rules.break({ token: of === undefined ? undefined : Number(of) })
    if ((token !== undefined) !== (expected !== undefined))
      this.#fail(`${name}: a break of ${of ?? 'any'} was answered ${token}`)
    this.#put(name, entry)
    if (token === undefined) return
    if (token <= entry.state.token)
      this.#fail(`${name}: token ${token} was given by a break after ${entry.state.token}`)
    this.#freed(name, entry, { ...rules.state, token: Number(token) }, now)
  }

  /** The server lost all data, but tokens still rise. */
  forgot(): void {
    for (const [name, { state }] of this.#entries) this.#put(name, unused(state.token))
  }

  /** The holder of the name according to the server. */
  holder(name: string, now: number): Holder | undefined {
    return this.#at(name, now).state.holders[0]
  }

  /** Does a claim with this note hold or wait? */
  knows(name: string, note: string, now: number): boolean {
    const { holders, waiters } = this.#at(name, now).state
    return [...holders, ...waiters].some(each => each.note === note)
  }

  isWithdrawn({ name, id }: ClaimKey, now: number): boolean {
    return this.#at(name, now).state.gone.has(id)
  }

  /** Names that are held or waited for. */
  left(now: number): string[] {
    return [...this.#entries.keys()].filter(name => {
      const { holders, waiters } = this.#at(name, now).state
      return holders.length + waiters.length > 0
    })
  }

  /** The name as it is now. What nobody sees does not change it. */
  #at(name: string, now: number): Entry {
    const entry = this.#entries.get(name) ?? unused(0)
    this.#entries.set(name, entry)
    const { holders, waiters, gone, token, changed } = new Name(now, entry.state).state
    const [ended] = entry.state.holders
    if (ended && holders.length === 0) Object.assign(entry, { freeSince: ended.expires, wasReleased: false })
    return { ...entry, state: { holders, waiters, gone, token, changed } }
  }

  #freed(name: string, entry: Entry, state: NameState, now: number): void {
    const isFreed = entry.state.holders.length > state.holders.length
    this.#put(name, { ...entry, state, ...(isFreed && { freeSince: now, wasReleased: true }) })
  }

  #put(name: string, entry: Entry): void {
    this.#entries.set(name, entry)
  }
}

function unused(token: number): Entry {
  return { state: { ...UNUSED, token }, freeSince: Number.NEGATIVE_INFINITY, wasReleased: false, since: new Map() }
}
