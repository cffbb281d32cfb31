import { setTimeout } from 'node:timers/promises'
import type { Harness } from '../../lab/conformance/index.ts'
import { LeaseError } from '../../src/contract/errors.ts'
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
} from '../../src/contract/store.ts'
import { LONGEST_REQUEST, requestLimit } from '../../src/contract/time.ts'
import type { NameClass } from '../model/name/model.ts'
import type { Flaw } from './flaws.ts'
import { Server } from './server.ts'

const guarantees: Guarantees = {
  scope: 'network',
  exclusion: 'always',
  token: 'a counter',
  order: 'first come, first served',
  sharing: 'slots',
  waiting: 'pushed',
  minTtl: 10,
  clock: 'the monotonic clock of this process',
  durability: 'only its counter survives a restart',
  limits: [],
}

/** All faults, over a simulated network. */
export function harnessOf(flaw?: Flaw, Rules?: NameClass): Harness {
  const site: Site = { server: new Server(flaw, Rules), flaw, isDead: false, running: Promise.resolve() }
  const open = (): Wired => new Wired(site)
  return {
    name: flaw ?? 'the reference',
    open: async () => open(),
    faults: {
      async severable() {
        const store = open()
        return { store, cut: async () => store.cut() }
      },
      async delayable() {
        const store = open()
        return { store, delay: async () => store.delay() }
      },
      async stop() {
        site.isDead = true
        site.server.crash()
        return async () => {
          site.isDead = false
        }
      },
      async pause() {
        const { promise, resolve } = Promise.withResolvers<void>()
        site.running = promise
        return async () => resolve()
      },
      async jump(ms) {
        site.server.wallOffset += ms
      },
    },
  }
}

interface Site {
  readonly server: Server
  readonly flaw: Flaw | undefined
  isDead: boolean
  running: Promise<void>
}

/** A client of the server. A cut loses messages, and a delay delivers them later. */
class Wired implements Store {
  readonly kind = 'wired'
  readonly guarantees: Guarantees = guarantees
  readonly #site: Site
  readonly #held = new Set<ClaimKey>()
  #isClosed = false
  #isCut = false
  #passing: Promise<void> = Promise.resolve()

  constructor(site: Site) {
    this.#site = site
  }

  cut(): () => Promise<void> {
    this.#isCut = true
    return async () => {
      this.#isCut = false
    }
  }

  delay(): () => Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#passing = promise
    return async () => resolve()
  }

  async acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    const limit = requestLimit(claim.ttl)
    const answer = await this.#send(signal, limit, (server, deadline) => server.acquire(claim, deadline))
    if (answer.held) this.#held.add(claim)
    else await this.#site.server.freed(claim.name)
    return answer
  }

  renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    return this.#send(signal, requestLimit(claim.ttl), (server, deadline) => server.renew(claim, deadline))
  }

  annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    return this.#send(signal, requestLimit(claim.ttl), (server, deadline) => server.annotate(claim, deadline))
  }

  release(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    return this.#send(signal, LONGEST_REQUEST, server => server.release(key))
  }

  onLoss(key: ClaimKey, lost: () => void): () => void {
    return this.#site.server.onLoss(key, () => void (this.#isCut || lost()))
  }

  async watch(key: ClaimKey, wake: Wake, signal: AbortSignal): Promise<void> {
    const stop = await this.#send(signal, LONGEST_REQUEST, server =>
      server.watch(key, delay => void (this.#isCut || wake(delay))),
    )
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
  }

  async *inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    yield* await this.#send(signal, LONGEST_REQUEST, server => server.inspect(query))
  }

  break(name: string, parameters: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#send(signal, LONGEST_REQUEST, (server, deadline) => server.break(name, parameters, deadline))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    if (this.#site.flaw === 'close releases all leases') for (const key of this.#held) this.#site.server.release(key)
  }

  async #send<Answer>(
    signal: AbortSignal,
    limit: number,
    carryOut: (server: Server, deadline: number) => Answer,
  ): Promise<Answer> {
    if (this.#isClosed) throw new LeaseError('CLOSED', 'the store was closed')
    if (this.#site.flaw !== 'given up is sent') signal.throwIfAborted()
    const deadline = performance.now() + limit
    await this.#reach()
    await this.#passing
    await this.#site.running
    const answer = carryOut(this.#site.server, deadline)
    await this.#reach()
    return answer
  }

  /** Resolves after the latency of one way. Rejects if the server is down. Never settles during a cut. */
  async #reach(): Promise<void> {
    await setTimeout(0)
    if (this.#site.isDead) throw new LeaseError('STORE_UNAVAILABLE', 'the server is dead')
    if (this.#isCut) await new Promise(() => {})
  }
}
