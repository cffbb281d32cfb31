import type { Busy, Claim, ClaimKey, Grant } from '../../src/contract/store.ts'
import { turnAfter } from '../../src/contract/time.ts'
import { placeLifetime } from '../../src/stores/shared/queue.ts'

export interface Holder {
  readonly claim: Claim
  readonly token: bigint
  expires: number
}

interface Place {
  readonly claim: Claim
  /** Since when it has been waiting. */
  readonly since: number
  readonly lapses: number
}

interface Name {
  holder: Holder | undefined
  freeSince: number
  /** Did its last holder release it, so that a waiter was woken? */
  wasReleased: boolean
  places: Place[]
  /** The highest token that was granted for it. */
  token: bigint
}

/**
 * A second implementation of the rules of a store with a queue, to check the memory store. It gets all requests and
 * replies in order. Calls `fail` for each violation.
 */
export class Reference {
  readonly #fail: (what: string) => void
  readonly #names = new Map<string, Name>()
  readonly #withdrawn = new Set<string>()

  constructor(fail: (what: string) => void) {
    this.#fail = fail
  }

  /** For a new grant, returns how long the name had been free while the claim waited, and why. */
  acquired(claim: Claim, answer: Grant | Busy, now: number): { idle: number; wasReleased: boolean } | undefined {
    const { name, id } = claim
    const state = this.#at(name, now)
    const { holder } = state
    const ahead = this.#ahead(state, id)
    const isFree = !holder && now >= state.freeSince + turnAfter(ahead)
    if (!answer.held) {
      if (this.#withdrawn.has(id)) return undefined
      if (holder?.claim.id === id) this.#fail(`${name}: a holder was refused its own lease`)
      else if (isFree) this.#fail(`${name}: a claim was refused a name that is free and its turn`)
      if (answer.ahead !== ahead) this.#fail(`${name}: ${ahead} wait before a claim, and it was told ${answer.ahead}`)
      if ((answer.holder?.token ?? 0n) !== (holder?.token ?? 0n)) this.#fail(`${name}: another holder was named`)
      const since = state.places[ahead]?.since ?? now
      if (claim.queue) state.places[ahead] = { claim, since, lapses: now + placeLifetime(claim.ttl) }
      return undefined
    }
    if (this.#withdrawn.has(id)) this.#fail(`${name}: a claim was granted after it was withdrawn`)
    if (answer.ttl < claim.ttl) this.#fail(`${name}: less was granted than was asked for`)
    if (holder?.claim.id === id) {
      if (answer.token !== holder.token) this.#fail(`${name}: the token of a lease changed`)
      holder.expires = Math.max(holder.expires, now + claim.ttl)
      return undefined
    }
    if (holder) this.#fail(`${name}: granted while another holds`)
    else if (!isFree)
      this.#fail(`${name}: granted before ${ahead} who wait, ${now - state.freeSince} ms after it fell free`)
    if (answer.token <= state.token) this.#fail(`${name}: token ${answer.token} was given after ${state.token}`)
    const since = state.places.find(place => place.claim.id === id)?.since ?? now
    state.token = answer.token
    state.places = state.places.filter(place => place.claim.id !== id)
    state.holder = { claim, token: answer.token, expires: now + claim.ttl }
    return { idle: now - Math.max(since, state.freeSince), wasReleased: state.wasReleased }
  }

  renewed(claim: Claim, answer: Grant | undefined, now: number): void {
    const { holder } = this.#at(claim.name, now)
    const isHeld = holder?.claim.id === claim.id
    if (isHeld !== (answer !== undefined))
      this.#fail(`${claim.name}: a renewal was ${answer ? 'granted to who holds no more' : 'refused to the holder'}`)
    if (!isHeld || !answer) return
    if (answer.token !== holder.token) this.#fail(`${claim.name}: the token of a lease changed by renewal`)
    holder.expires = now + claim.ttl
  }

  released({ name, id }: ClaimKey, answer: 'released' | 'gone', now: number): void {
    const state = this.#at(name, now)
    const isHolder = state.holder?.claim.id === id
    const waits = state.places.some(place => place.claim.id === id)
    if ((isHolder || waits) !== (answer === 'released')) this.#fail(`${name}: a release was answered ${answer}`)
    state.places = state.places.filter(place => place.claim.id !== id)
    if (isHolder) free(state, now, true)
    if (answer === 'gone') this.#withdrawn.add(id)
  }

  /** `of`: the token of the lease that was to end; `undefined`: of any. */
  broken(name: string, of: bigint | undefined, token: bigint | undefined, now: number): void {
    const state = this.#at(name, now)
    const isHeld = state.holder !== undefined && (of === undefined || of === state.holder.token)
    if ((token !== undefined) !== isHeld) this.#fail(`${name}: a break of ${of ?? 'any'} was answered ${token}`)
    if (token === undefined) return
    if (token <= state.token) this.#fail(`${name}: token ${token} was given by a break after ${state.token}`)
    state.token = token
    free(state, now, true)
  }

  /** The server lost all data, but tokens still rise. */
  forgot(): void {
    for (const state of this.#names.values()) {
      state.holder = undefined
      state.freeSince = Number.NEGATIVE_INFINITY
      state.places = []
    }
    this.#withdrawn.clear()
  }

  /** The holder of the name according to the server. */
  holder(name: string, now: number): Holder | undefined {
    return this.#at(name, now).holder
  }

  /** Does a claim with this note hold or wait? */
  knows(name: string, note: string, now: number): boolean {
    const { holder, places } = this.#at(name, now)
    return holder?.claim.note === note || places.some(({ claim }) => claim.note === note)
  }

  /** The state, owner and position of each record of one name. */
  records(name: string, now: number): (string | number | undefined)[][] {
    const { holder, places } = this.#at(name, now)
    const held = holder ? [['held', holder.claim.owner, undefined]] : []
    return [...held, ...places.map(({ claim }, position) => ['waiting', claim.owner, position])]
  }

  /** Names that are held or waited for. */
  left(now: number): string[] {
    return [...this.#names.keys()].filter(name => {
      const { holder, places } = this.#at(name, now)
      return holder || places.length > 0
    })
  }

  #ahead({ places }: Name, id: string): number {
    const index = places.findIndex(place => place.claim.id === id)
    return index < 0 ? places.length : index
  }

  #at(name: string, now: number): Name {
    let state = this.#names.get(name)
    if (!state) {
      state = { holder: undefined, freeSince: Number.NEGATIVE_INFINITY, wasReleased: false, places: [], token: 0n }
      this.#names.set(name, state)
    }
    if (state.holder && state.holder.expires <= now) free(state, state.holder.expires, false)
    state.places = state.places.filter(place => place.lapses > now)
    return state
  }
}

function free(state: Name, since: number, wasReleased: boolean): void {
  state.holder = undefined
  state.wasReleased = wasReleased
  state.freeSince = since
}
