import { LeaseError } from '../../../src/contract/errors.ts'
import {
  type BreakParameters,
  type Busy,
  type Claim,
  type ClaimKey,
  type Grant,
  type Guarantees,
  LARGEST_LIMIT,
  type LeaseRecord,
  type NodeRecord,
  type Query,
  type Store,
  type Wake,
} from '../../../src/contract/store.ts'
import { LONGEST_REQUEST, requestLimit } from '../../../src/contract/time.ts'
import { memory } from '../../../src/stores/memory/index.ts'
import { BEGINNING, type Machine } from '../machine.ts'
import type { Network } from '../network.ts'
import type { World } from '../world.ts'

const never: AbortSignal = new AbortController().signal

/** Deliberate mistakes, which the checks must find. */
export interface Variant {
  /** Releases again later, by name. */
  readonly releasesTwice?: boolean
  /** Every claim has the limit of a reader. */
  readonly ignoresLimits?: boolean
}

/** The memory store as a server, in true time. */
export function serverOf(world: World): Store {
  return memory({
    clock: {
      now: () => world.now,
      wall: () => BEGINNING + world.now,
      after: () => {
        throw new Error('a store keeps no timers')
      },
    },
  })
}

/** The store of one process, over a network that loses, delays, copies and reorders messages. */
export class DistantStore implements Store {
  readonly kind = 'simulated'
  readonly guarantees: Guarantees
  readonly #world: World
  readonly #machine: Machine
  readonly #network: Network
  readonly #server: Store
  readonly #variant: Variant

  constructor(world: World, machine: Machine, network: Network, server: Store, variant: Variant) {
    this.guarantees = server.guarantees
    this.#world = world
    this.#machine = machine
    this.#network = network
    this.#server = server
    this.#variant = variant
  }

  acquire(claim: Claim): Promise<Grant | Busy> {
    const asked = this.#variant.ignoresLimits ? { ...claim, limit: LARGEST_LIMIT } : claim
    return this.#ask(requestLimit(claim.ttl), () => this.#server.acquire(asked, never))
  }

  renew(claim: Claim): Promise<Grant | undefined> {
    return this.#ask(requestLimit(claim.ttl), () => this.#server.renew(claim, never))
  }

  annotate(claim: Claim): Promise<boolean> {
    return this.#ask(requestLimit(claim.ttl), () => this.#server.annotate(claim, never))
  }

  release(key: ClaimKey): Promise<'released' | 'gone'> {
    if (this.#variant.releasesTwice)
      this.#world.after(20, () => void this.#server.break(key.name, { by: 'anybody' }, never))
    return this.#ask(Number.POSITIVE_INFINITY, () => this.#server.release(key, never))
  }

  break(name: string, parameters: BreakParameters): Promise<bigint | undefined> {
    return this.#ask(LONGEST_REQUEST, () => this.#server.break(name, parameters, never))
  }

  watch(claim: Claim, wake: Wake, signal: AbortSignal): Promise<void> {
    const atServer = new AbortController()
    signal.addEventListener('abort', () => this.#network.exchange(this.#machine, async () => atServer.abort()))
    const heard: Wake = delay => {
      if (!signal.aborted) wake(delay)
    }
    const send: Wake = delay => this.#network.wake(this.#machine, () => heard(delay))
    return this.#ask(LONGEST_REQUEST, async () => this.#server.watch?.(claim, send, atServer.signal))
  }

  async *inspect(query: Query): AsyncIterable<LeaseRecord | NodeRecord> {
    yield* await this.#ask(LONGEST_REQUEST, async () => Array.fromAsync(this.#server.inspect(query, never)))
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  /** The server refuses a request that arrives after its limit (R3). */
  #ask<Answer>(limit: number, serve: () => Promise<Answer>): Promise<Answer> {
    const deadline = this.#world.now + limit * 0.99 // in true time, whatever the clock of the machine
    return this.#network.exchange(this.#machine, async () => {
      if (this.#world.now > deadline) throw new LeaseError('OUTCOME_UNKNOWN', 'the request came late')
      return serve()
    })
  }
}
