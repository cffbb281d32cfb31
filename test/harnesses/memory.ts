import { setTimeout } from 'node:timers/promises'
import { LeaseError } from '../../src/contract/errors.ts'
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
} from '../../src/contract/store.ts'
import { LONGEST_REQUEST, requestLimit } from '../../src/contract/time.ts'
import { guarantees } from '../../src/stores/memory/guarantees.ts'
import { memory } from '../../src/stores/memory/index.ts'
import { lacksBy, type StoreHarness } from './harness.ts'

/** The store in this process, behind a simulated server that may be down. */
export function memoryHarness(): StoreHarness {
  const server: Server = { store: memory(), dead: false, running: Promise.resolve() }
  return {
    name: 'memory',
    store: 'memory',
    cycles: 10_000,
    open: async () => new Reached(server),
    faults: {
      async severable() {
        const store = new Reached(server)
        return {
          store,
          async cut() {
            store.isCut = true
            return async () => {
              store.isCut = false
            }
          },
        }
      },
      async delayable() {
        const store = new Reached(server)
        return {
          store,
          async delay() {
            const { promise, resolve } = Promise.withResolvers<void>()
            store.arriving = promise
            return async () => resolve()
          },
        }
      },
      async stop() {
        server.dead = true
        return async () => {
          await setTimeout(2) // longer than one step of the wall clock, which is the lower bound of tokens
          server.store = memory()
          server.dead = false
        }
      },
      async pause() {
        const { promise, resolve } = Promise.withResolvers<void>()
        server.running = promise
        return async () => resolve()
      },
    },
    lacks: {
      ...lacksBy(guarantees),
      close: 'all users of the store share it, and it has no connection',
      jump: "its clock is the process's own, whose jumps the core sees as well",
    },
    end: async () => {},
  }
}

interface Server {
  store: Store
  dead: boolean
  running: Promise<void>
}

class Reached implements Store {
  readonly kind = 'memory'
  readonly guarantees: Guarantees
  isCut = false
  arriving: Promise<void> = Promise.resolve()
  readonly #server: Server

  constructor(server: Server) {
    this.#server = server
    this.guarantees = server.store.guarantees
  }

  acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    return this.#reach(requestLimit(claim.ttl), store => store.acquire(claim, signal))
  }

  renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    return this.#reach(requestLimit(claim.ttl), store => store.renew(claim, signal))
  }

  annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    return this.#reach(requestLimit(claim.ttl), store => store.annotate(claim, signal))
  }

  release(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    return this.#reach(LONGEST_REQUEST, store => store.release(key, signal))
  }

  watch(claim: Claim, wake: Wake, signal: AbortSignal): Promise<void> {
    const heard: Wake = delay => {
      if (!this.isCut) wake(delay)
    }
    return this.#reach(LONGEST_REQUEST, async store => store.watch?.(claim, heard, signal))
  }

  async *inspect(query: Query, signal: AbortSignal): ReturnType<Store['inspect']> {
    yield* await this.#reach(LONGEST_REQUEST, async store => store.inspect(query, signal))
  }

  break(name: string, parameters: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#reach(LONGEST_REQUEST, store => store.break(name, parameters, signal))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.store[Symbol.asyncDispose]()
  }

  async #reach<Answer>(limit: number, ask: (store: Store) => Promise<Answer>): Promise<Answer> {
    const server = this.#server
    const deadline = performance.now() + limit
    if (this.isCut) await new Promise(() => {})
    await this.arriving
    if (server.dead) throw new LeaseError('STORE_UNAVAILABLE', 'the server is dead')
    await server.running
    if (performance.now() > deadline)
      throw new LeaseError('OUTCOME_UNKNOWN', 'the request arrived late and was refused')
    const answer = await ask(server.store)
    if (this.isCut) await new Promise(() => {})
    return answer
  }
}
