import type {
  BreakParameters,
  Busy,
  Claim,
  ClaimKey,
  Grant,
  Guarantees,
  Query,
  Store,
  Wake,
} from '../../../src/contract/store.ts'
import { requestLimit } from '../../../src/contract/time.ts'
import type { Machine } from '../machine.ts'
import type { World } from '../world.ts'
import type { Ledger } from './ledger.ts'

/** Passes all on to a store, and tells the ledger what it answers. */
export class Witness implements Store {
  readonly kind: string
  readonly guarantees: Guarantees
  readonly #store: Store
  readonly #world: World
  readonly #machine: Machine
  readonly #ledger: Ledger
  readonly #patience: number

  /** `patience`: milliseconds that a call may take besides those of `requestLimit`; no limit where messages are lost. */
  constructor(store: Store, world: World, machine: Machine, ledger: Ledger, patience: number) {
    this.kind = store.kind
    this.guarantees = store.guarantees
    this.#store = store
    this.#world = world
    this.#machine = machine
    this.#ledger = ledger
    this.#patience = patience
  }

  async acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    const asked = this.#world.now
    const answer = await this.#timed(
      'acquire',
      this.#store.acquire(claim, signal),
      requestLimit(claim.ttl, this.guarantees.acquireShare),
    )
    if (answer.held) this.#ledger.granted(claim.name, claim.id, answer.token, asked)
    return answer
  }

  renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    return this.#timed('renew', this.#store.renew(claim, signal))
  }

  annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    return this.#timed('annotate', this.#store.annotate(claim, signal))
  }

  release(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    return this.#timed('release', this.#store.release(key, signal))
  }

  async watch(claim: Claim, wake: Wake, signal: AbortSignal): Promise<void> {
    await this.#store.watch?.(claim, wake, signal)
  }

  inspect(query: Query, signal: AbortSignal): ReturnType<Store['inspect']> {
    return this.#store.inspect(query, signal)
  }

  async break(name: string, parameters: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    const asked = this.#world.now
    this.#ledger.breaks(name)
    const token = await this.#timed('break', this.#store.break(name, parameters, signal))
    if (token !== undefined) this.#ledger.broke(name, token, asked)
    return token
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#store[Symbol.asyncDispose]()
  }

  async #timed<Answer>(verb: string, answer: Promise<Answer>, limit = 0): Promise<Answer> {
    const began = this.#machine.now()
    try {
      return await answer
    } finally {
      const took = this.#machine.now() - began
      if (took > limit + this.#patience && !this.#machine.hasStopped)
        this.#ledger.fail(`${verb} took ${took.toFixed(1)} ms`)
    }
  }
}
