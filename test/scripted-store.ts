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
} from '../src/contract/store.ts'
import type { LocksDefaults } from '../src/core/options.ts'
import { StoreLocks } from '../src/create-locks.ts'
import { memory } from '../src/stores/memory/index.ts'
import { VirtualClock } from '../src/testing/clock.ts'

type Verb = 'acquire' | 'renew' | 'annotate' | 'release' | 'watch' | 'inspect' | 'break' | 'close'

/** Decides the outcome of a call. `forward` passes the call to the server. */
export type Rule = (forward: () => Promise<unknown>, signal: AbortSignal) => unknown

/** Never aborts: the server executes a request that was sent, even if its sender aborts. */
const sent = new AbortController().signal

const never = new Promise<never>(() => {})

/** The request never arrives. */
export const lost: Rule = () => never

/** The server executes the request, and its reply is lost. */
export const unanswered: Rule = async forward => {
  await forward()
  return never
}

/** The connection is refused. */
export const refused: Rule = () => Promise.reject(new Error('connect ECONNREFUSED'))

/** A store whose requests and replies a test delays, loses or invents. */
class ScriptedStore implements Store {
  readonly kind = 'scripted'
  readonly guarantees: Guarantees
  /** The verbs of all calls, in order. */
  readonly calls: Verb[] = []
  /** By the id of a claim: notifies its holder that the lease is lost. */
  readonly notifyLoss: Map<string, () => void> = new Map()
  /** The claim of the last acquire or renew. */
  claim: Claim | undefined
  readonly #server: Store
  readonly #rules = new Map<Verb, Rule>()

  constructor(server: Store, guarantees: Partial<Guarantees> = {}) {
    this.#server = server
    this.guarantees = { ...server.guarantees, ...guarantees }
  }

  /** How many calls the core made. */
  count(verb: Verb): number {
    return this.calls.filter(call => call === verb).length
  }

  /** From now on `rule` decides every such call. */
  rule(verb: Verb, rule: Rule): void {
    this.#rules.set(verb, rule)
  }

  onLoss({ id }: ClaimKey, lost: () => void): () => void {
    this.notifyLoss.set(id, lost)
    return () => void this.notifyLoss.delete(id)
  }

  /** Removes the rules: the calls reach the server again. */
  restore(...verbs: Verb[]): void {
    for (const verb of verbs) this.#rules.delete(verb)
  }

  /** One rule for all calls about a claim. */
  ruleAll(rule: Rule): void {
    for (const verb of ['acquire', 'renew', 'annotate', 'release', 'watch', 'break'] as const) this.rule(verb, rule)
  }

  /** Delays the requests of later calls until the returned function is called. */
  holdRequests(verb: Verb): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.rule(verb, forward => promise.then(forward))
    return resolve
  }

  /** The server executes later calls. Delays their replies until the returned function is called. */
  holdReplies(verb: Verb): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.rule(verb, async forward => {
      const answer = await forward()
      await promise
      return answer
    })
    return resolve
  }

  acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    this.claim = claim
    return this.#call('acquire', () => this.#server.acquire(claim, sent), signal)
  }

  renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    this.claim = claim
    return this.#call('renew', () => this.#server.renew(claim, sent), signal)
  }

  annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    return this.#call('annotate', () => this.#server.annotate(claim, sent), signal)
  }

  release(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    return this.#call('release', () => this.#server.release(key, sent), signal)
  }

  watch(claim: Claim, wake: Wake, signal: AbortSignal): Promise<void> {
    return this.#call('watch', async () => this.#server.watch?.(claim, wake, signal), signal)
  }

  inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    return this.#call('inspect', () => this.#server.inspect(query, signal) as never, signal) as never
  }

  break(name: string, parameters: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#call('break', () => this.#server.break(name, parameters, sent), signal)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#call('close', async () => {}, sent)
  }

  /** A rule may return any value, as a faulty store may. */
  #call<Answer>(verb: Verb, forward: () => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
    this.calls.push(verb)
    const rule = this.#rules.get(verb)
    return (rule ? rule(forward, signal) : forward()) as Promise<Answer>
  }
}

export interface Stage {
  readonly clock: VirtualClock
  /** Between `locks` and `server`. */
  readonly store: ScriptedStore
  readonly server: Store
  readonly locks: StoreLocks
  /** Another process, whose requests always reach the server. */
  readonly other: StoreLocks
}

/** Locks with a virtual clock, over a store that the test controls. It claims other `guarantees` than it has. */
export function stage(defaults: LocksDefaults = {}, guarantees?: Partial<Guarantees>): Stage {
  const clock = new VirtualClock()
  const server = memory({ clock })
  const store = new ScriptedStore(server, guarantees)
  const environment = { clock, random: () => 0.5 }
  return {
    clock,
    store,
    server,
    locks: new StoreLocks(store, defaults, environment),
    other: new StoreLocks(server, { owner: 'other' }, environment),
  }
}

/** The current state of a promise. A rejection that is followed is not unhandled. */
export interface Outcome<Value> {
  readonly settled: boolean
  readonly value: Value | undefined
  readonly error: unknown
}

export function follow<Value>(promise: PromiseLike<Value>): Outcome<Value> {
  const outcome: { settled: boolean; value: Value | undefined; error: unknown } = {
    settled: false,
    value: undefined,
    error: undefined,
  }
  promise.then(
    value => Object.assign(outcome, { settled: true, value }),
    (error: unknown) => Object.assign(outcome, { settled: true, error }),
  )
  return outcome
}
