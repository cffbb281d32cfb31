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
import { memory } from '../../src/stores/memory/index.ts'
import { KeptPositions } from '../../src/stores/wire/kept-positions.ts'
import type { Kept } from '../../src/stores/wire/local-queue.ts'
import type { Ledger } from './ledger.ts'
import type { Machine } from './machine.ts'
import type { Network } from './network.ts'
import type { Late, Server } from './server.ts'

/** Part of every reply: the time of the server when it was sent. */
interface Reply<Answer> {
  readonly answer: Answer | Late
  readonly time: number
}

/** Mistakes in the handling of replies, which the checks must find. */
export interface Mistake {
  /** Milliseconds that are added to a grant, up to the latency of its request. */
  ttl?(elapsed: number): number
  /** Keeps the waiters of a process. */
  readonly places?: typeof KeptPositions
  /** The result of a failed renewal. */
  failedRenewal?(claim: Claim, last: Grant | undefined): Grant | undefined
}

/**
 * The store of one process. Each request has a deadline in the server's time. Replies give a lower bound of that time. A
 * request that is refused as late gets the time in its reply, and is sent again. Waiters that the server notifies are kept
 * as over Redis and PostgreSQL.
 */
export class RemoteStore implements Store {
  readonly kind = 'simulated'
  readonly guarantees: Guarantees = memory().guarantees
  readonly #machine: Machine
  readonly #network: Network
  readonly #server: Server
  readonly #mistake: Mistake
  readonly #ledger: Ledger
  /** The server's time less the machine's. */
  #offset: number | undefined
  #lastGrant: Grant | undefined
  readonly #watched = new Set<string>()
  readonly #places: KeptPositions
  readonly #refuses: () => boolean

  /** `refuses`: does the process not accept a grant, as a drop-in without the lock of the old library? */
  constructor(
    machine: Machine,
    network: Network,
    server: Server,
    ledger: Ledger,
    mistake: Mistake,
    refuses: () => boolean,
  ) {
    this.#ledger = ledger
    this.#machine = machine
    this.#network = network
    this.#server = server
    this.#mistake = mistake
    this.#refuses = refuses
    const { places: Kind = KeptPositions } = mistake
    this.#places = new Kind(machine, { most: 2, keep: (name, lifetime, ids) => this.#keep(name, lifetime, ids) })
  }

  async acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    const sent = this.#machine.now()
    const answer = await this.#ask(requestLimit(claim.ttl), signal, deadline =>
      this.#server.acquire(claim, deadline, never),
    )
    if (answer.held) {
      this.#places.granted(claim)
      if (claim.queue && this.#refuses()) return { held: false, retryAfter: 20 }
      return this.#granted(answer, sent)
    }
    if (signal.aborted || !claim.queue || answer.ahead === undefined) return answer
    const remaining = answer.holder?.remaining ?? 0
    this.#places.told(claim, { grantAt: this.#machine.now() + remaining, rank: answer.ahead })
    // The server notifies those only that are watched.
    return { ...answer, listens: this.#watched.has(claim.id), kept: remaining > 0 }
  }

  async renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    const sent = this.#machine.now()
    const isHeard = this.#ledger.asks(Number(claim.note))
    try {
      const answer = await this.#ask(requestLimit(claim.ttl), signal, deadline =>
        this.#server.renew(claim, deadline, never),
      )
      if (!signal.aborted) isHeard()
      return answer && this.#granted(answer, sent)
    } catch (error) {
      const grant = this.#mistake.failedRenewal?.(claim, this.#lastGrant)
      if (grant) return grant
      throw error
    }
  }

  annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    return this.#ask(requestLimit(claim.ttl), signal, deadline => this.#server.annotate(claim, deadline, never))
  }

  release({ name, id }: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    const isWatched = this.#places.watches(name, id)
    const released = this.#ask(LONGEST_REQUEST, signal, () => this.#server.release({ name, id }, never))
    if (!isWatched) this.#places.prompt(name)
    return released
  }

  break(name: string, parameters: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#ask(LONGEST_REQUEST, signal, deadline => this.#server.break(name, parameters, deadline, never))
  }

  async watch(claim: Claim, wake: Wake, signal: AbortSignal): Promise<void> {
    const atServer = new AbortController()
    const heard: Wake = delay => {
      if (!signal.aborted) wake(delay)
    }
    signal.addEventListener('abort', () => {
      this.#watched.delete(claim.id)
      this.#places.remove(claim, wake)
      void this.#network.exchange(this.#machine, async () => atServer.abort())
    })
    await this.#ask(LONGEST_REQUEST, signal, () =>
      this.#server.watch(claim, delay => this.#network.wake(this.#machine, () => heard(delay)), atServer.signal),
    )
    if (signal.aborted) return
    this.#watched.add(claim.id)
    if (claim.queue) this.#places.add(claim, wake)
  }

  async *inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    yield* await this.#ask(LONGEST_REQUEST, signal, () => this.#server.inspect(query, never))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#places.close()
  }

  async #keep(name: string, lifetime: number, ids: readonly string[]): Promise<Kept> {
    const { remaining, ...kept } = await this.#ask(requestLimit(lifetime), never, deadline =>
      this.#server.keep(name, ids, deadline, never),
    )
    this.#ledger.counts.keeps += 1
    return { ...kept, grantAt: this.#machine.now() + remaining }
  }

  #granted(grant: Grant, sent: number): Grant {
    const more = this.#mistake.ttl?.(this.#machine.now() - sent) ?? 0
    this.#lastGrant = { ...grant, ttl: grant.ttl + more }
    return this.#lastGrant
  }

  async #ask<Answer>(
    limit: number,
    signal: AbortSignal,
    serve: (deadline: number) => Promise<Answer | Late>,
  ): Promise<Answer> {
    const giveUp = this.#machine.now() + limit
    for (;;) {
      signal.throwIfAborted()
      const offset = this.#offset ?? (await this.#askTime())
      const { answer, time } = await this.#exchange(() => serve(giveUp + offset))
      this.#offset = time - this.#machine.now()
      if (!isLate(answer)) return answer
      if (this.#machine.now() >= giveUp) throw new LeaseError('OUTCOME_UNKNOWN', 'the request came late')
    }
  }

  async #askTime(): Promise<number> {
    const { time } = await this.#exchange(async () => undefined)
    return time - this.#machine.now()
  }

  #exchange<Answer>(serve: () => Promise<Answer | Late>): Promise<Reply<Answer>> {
    const server = this.#server
    return this.#network.exchange(this.#machine, async () => {
      await server.reached()
      return { answer: await serve(), time: server.time() }
    })
  }
}

/** The server executes every request that arrived, also if its sender gave up. */
const never: AbortSignal = new AbortController().signal

function isLate(answer: unknown): answer is Late {
  return typeof answer === 'object' && answer !== null && 'late' in answer
}
