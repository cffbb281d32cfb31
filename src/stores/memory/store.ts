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
import { type Clock, gracePeriod } from '../../contract/time.ts'
import { Name } from '../rules/name.ts'
import { holderOf, recordsOf } from '../rules/records.ts'
import { type NameState, UNUSED } from '../rules/state.ts'
import { guarantees } from './guarantees.ts'

export class MemoryStore implements Store {
  readonly kind = 'memory'
  readonly guarantees: Guarantees = guarantees
  readonly #clock: Clock
  readonly #states = new Map<string, NameState>()
  readonly #wakes = new Map<string, Wake>()
  /** The last token of any name. It is kept here because unused names are forgotten. */
  #token = 0
  #sweepAbove = 1_000

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    signal.throwIfAborted()
    const { name, id, ttl, limit = 1, units = 1, roundTrip } = claim
    const grace = gracePeriod(roundTrip)
    return this.#decide(
      name,
      rules => {
        const answer = rules.acquire({ ...claim, limit, units, grace })
        if (answer.held) return grant(answer, ttl)
        const { retryAfter, ahead } = answer
        return { held: false, retryAfter, ahead, holder: holderOf(name, rules.state, rules.now) }
      },
      id,
    )
  }

  async renew({ name, id, ttl }: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    signal.throwIfAborted()
    return this.#decide(name, rules => {
      const answer = rules.renew(id, ttl)
      return answer && grant(answer, ttl)
    })
  }

  async annotate({ name, id, note }: Claim, signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted()
    return this.#decide(name, rules => rules.annotate(id, note))
  }

  async release({ name, id }: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    signal.throwIfAborted()
    return this.#decide(name, rules => rules.release(id))
  }

  async watch({ id }: ClaimKey, wake: Wake, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    this.#wakes.set(id, wake)
    const end = (): void => {
      if (this.#wakes.get(id) === wake) this.#wakes.delete(id)
    }
    signal.addEventListener('abort', end, { once: true })
  }

  async *inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    signal.throwIfAborted()
    const names =
      'name' in query ? [query.name] : [...this.#states.keys()].filter(name => name.startsWith(query.prefix))
    const now = this.#clock.now()
    for (const name of names.sort()) yield* recordsOf(name, new Name(now, this.#state(name)).state, now)
  }

  async break(name: string, { token, slot }: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    signal.throwIfAborted()
    const broken = this.#decide(name, rules =>
      rules.break({ slot, token: token === undefined ? undefined : Number(token) }),
    )
    return broken && BigInt(broken.token)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Nothing is open, and other locks of this process may share the store.
  }

  /** Makes a decision and wakes waiters. `asking`: the claim that gets the answer, and need not be woken. */
  #decide<Answer>(name: string, decision: (rules: Name) => Answer, asking?: string): Answer {
    this.#sweep()
    const floor = Math.max(this.#token + 1, Math.floor(this.#clock.wall() * 1_000))
    const rules = new Name(this.#clock.now(), this.#state(name), floor)
    const answer = decision(rules)
    const { state } = rules
    this.#states.set(name, state)
    this.#token = Math.max(this.#token, state.token)
    for (const [id, delay] of rules.wakes(asking)) this.#wakes.get(id)?.(delay)
    return answer
  }

  #state(name: string): NameState {
    return this.#states.get(name) ?? UNUSED
  }

  /** Forgets names that are not used, whenever the number of names has doubled: amortised O(1) per call. */
  #sweep(): void {
    if (this.#states.size <= this.#sweepAbove) return
    const now = this.#clock.now()
    for (const [name, state] of this.#states) {
      const { holders, waiters, gone } = new Name(now, state).state
      if (holders.length + waiters.length + gone.size === 0) this.#states.delete(name)
    }
    this.#sweepAbove = Math.max(1_000, 2 * this.#states.size)
  }
}

function grant({ token, slots }: { readonly token: number; readonly slots: readonly number[] }, ttl: number): Grant {
  return { held: true, token: BigInt(token), ttl, slots }
}
