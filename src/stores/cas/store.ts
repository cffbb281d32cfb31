import type {
  BreakParameters,
  Busy,
  Claim,
  ClaimKey,
  Grant,
  Guarantees,
  LeaseRecord,
  Query,
  Store,
  Wake,
} from '../../contract/store.ts'
import { type Clock, gracePeriod, LONGEST_REQUEST, requestLimit } from '../../contract/time.ts'
import type { Name } from '../rules/name.ts'
import { holderOf, recordsOf } from '../rules/records.ts'
import { closed } from '../wire/failure.ts'
import { keyOf, nameOf } from './key.ts'
import type { Entry, Listed, Register } from './register.ts'
import { type Shared, SharedName } from './shared-name.ts'
import { POLL, Waiting } from './waiting.ts'

/** What a process saw of a name tells when its holder died, so it is kept of the names that were used last. */
const MOST_NAMES = 10_000

/** The number of records that an inspection reads at once. */
const PAGE = 100

/** The share of its limit that a request uses. The rest is for the answer. */
const SHARE = 0.9

export class CasStore<Version> implements Store {
  readonly kind: string
  readonly guarantees: Guarantees
  readonly #register: Register<Version>
  readonly #clock: Clock
  readonly #shared: Shared<Version>
  readonly #names = new Map<string, SharedName<Version>>()
  readonly #waiting = new Map<string, Waiting>()
  /** Aborts once the store is closed. */
  readonly #closing = new AbortController()

  constructor(register: Register<Version>, kind: string, guarantees: Guarantees, clock: Clock) {
    this.kind = kind
    this.guarantees = guarantees
    this.#register = register
    this.#clock = clock
    const wake: Shared<Version>['wake'] = (name, wakes) => {
      const waiting = this.#waiting.get(name)
      if (waiting) for (const [id, delay] of wakes) waiting.wake(id, delay)
    }
    this.#shared = { register, clock, wake }
  }

  acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    const { name, id, limit = 1, units = 1, queue } = claim
    return this.#ask(claim, requestLimit(claim.ttl), signal, true, (rules): Grant | Busy => {
      const answer = rules.acquire({ ...claim, limit, units, grace: gracePeriod(claim.roundTrip ?? this.#delay(name)) })
      if (answer.held) return grant(answer, claim)
      const { retryAfter, ahead } = answer
      const isKept = queue && rules.state.waiters.some(waiter => waiter.id === id)
      const busy = { held: false, retryAfter, ahead, holder: holderOf(name, rules.state, rules.now) } as const
      return isKept ? { ...busy, listens: true, kept: true } : busy
    })
  }

  renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    return this.#ask(claim, requestLimit(claim.ttl), signal, true, rules => {
      const answer = rules.renew(claim.id, claim.ttl)
      return answer && grant(answer, claim)
    })
  }

  annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    return this.#ask(claim, requestLimit(claim.ttl), signal, true, rules => rules.annotate(claim.id, claim.note))
  }

  release(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    return this.#ask(key, LONGEST_REQUEST, signal, false, rules => rules.release(key.id))
  }

  break(name: string, { token, slot }: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    const only = { slot, token: token === undefined ? undefined : Number(token) }
    return this.#ask({ name, id: '' }, LONGEST_REQUEST, signal, false, rules => {
      const broken = rules.break(only)
      return broken && BigInt(broken.token)
    })
  }

  async watch(claim: Claim, wake: Wake, signal: AbortSignal): Promise<void> {
    this.#check(signal)
    const { name } = claim
    let waiting = this.#waiting.get(name)
    if (!waiting) {
      const register = this.#register
      const listen = register.watch?.bind(register, keyOf(name))
      waiting = new Waiting(this.#nameOf(name), listen, this.#clock, () => this.#waiting.delete(name))
      this.#waiting.set(name, waiting)
    }
    await waiting.add(claim, wake, signal)
  }

  async *inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    this.#check(signal)
    // A signal of `AbortSignal.any` would leave 180 bytes until the store is closed, on Node 22.
    const ended = new AbortController()
    const sources = [signal, this.#closing.signal]
    const end = (): void => ended.abort(sources.find(({ aborted }) => aborted)?.reason)
    for (const source of sources) source.addEventListener('abort', end)
    try {
      yield* this.#inspect(query, ended.signal)
    } finally {
      for (const source of sources) source.removeEventListener('abort', end)
    }
  }

  async *#inspect(query: Query, ended: AbortSignal): AsyncIterable<LeaseRecord> {
    if ('name' in query) return yield* await this.#records(query.name, ended)
    let page: Listed<Version>[] = []
    const read = async (): Promise<LeaseRecord[][]> => {
      const all = page
      page = []
      query.sent?.(all.length)
      return Promise.all(all.map(({ key, entry }) => this.#records(nameOf(key) as string, ended, entry)))
    }
    for await (const listed of this.#register.list(keyOf(query.prefix), ended)) {
      if (nameOf(listed.key) === undefined) continue // not ours
      if (page.push(listed) === PAGE) for (const records of await read()) yield* records
    }
    for (const records of await read()) yield* records
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort(closed())
    for (const name of this.#names.values()) name.close()
    for (const waiting of [...this.#waiting.values()]) waiting.close()
    await this.#register.close?.()
  }

  async #ask<Answer>(
    { name, id }: ClaimKey,
    limit: number,
    signal: AbortSignal,
    isRepeatable: boolean,
    decide: (rules: Name) => Answer,
  ): Promise<Answer> {
    this.#check(signal)
    return this.#nameOf(name).ask({ id, signal, limit: SHARE * limit, isRepeatable, decide })
  }

  async #records(name: string, signal: AbortSignal, listed?: Entry<Version>): Promise<LeaseRecord[]> {
    this.#check(signal)
    const rules = await this.#nameOf(name).look(signal, listed)
    return recordsOf(name, rules.state, rules.now)
  }

  #check(signal: AbortSignal): void {
    this.#closing.signal.throwIfAborted()
    signal.throwIfAborted()
  }

  /** Milliseconds that a waiter of this process may need to ask once it can be granted the name. */
  #delay(name: string): number {
    const asks = 2 * this.#nameOf(name).roundTrip
    return this.#register.watch ? asks : POLL + asks
  }

  #nameOf(text: string): SharedName<Version> {
    const name = this.#names.get(text) ?? new SharedName(text, this.#shared)
    this.#names.delete(text)
    this.#names.set(text, name) // the last one, because it was used last
    if (this.#names.size > MOST_NAMES) this.#forget()
    return name
  }

  #forget(): void {
    for (const [text, name] of this.#names)
      if (name.isIdle && !this.#waiting.has(text)) return void this.#names.delete(text)
  }
}

function grant({ token, slots }: { readonly token: number; readonly slots: readonly number[] }, { ttl }: Claim): Grant {
  return { held: true, token: BigInt(token), ttl, slots }
}
