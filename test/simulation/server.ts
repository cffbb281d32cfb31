import { LeaseError } from '../../src/contract/errors.ts'
import { isLease } from '../../src/contract/record.ts'
import type {
  BreakParameters,
  Busy,
  Claim,
  ClaimKey,
  Grant,
  LeaseRecord,
  Query,
  Store,
  Wake,
} from '../../src/contract/store.ts'
import type { Clock } from '../../src/contract/time.ts'
import { memory } from '../../src/stores/memory/index.ts'
import type { Ledger } from './ledger.ts'
import { BEGINNING } from './machine.ts'
import type { World } from './world.ts'

/** The reply to a late request: it has the server's time, so the sender can correct its own. */
export interface Late {
  readonly late: true
}

/** Mistakes of the server, which the checks must find. */
export interface Flaw {
  /** Executes late requests. */
  readonly takesLate?: boolean
  wrap?(store: Store): Store
}

/** What became of the positions of waiters. */
export interface Positions {
  /** Milliseconds for which the name is held. */
  readonly remaining: number
  readonly rank: number
  readonly first: string | undefined
  readonly lost: readonly string[]
}

/** One server over the memory store. It reports all that it does to the ledger. */
export class Server {
  refusedLate = 0
  readonly #world: World
  readonly #ledger: Ledger
  readonly #flaw: Flaw
  readonly #clock: Clock
  #isRefusing = false
  #running: Promise<void> = Promise.resolve()
  #leap = 0
  #step = 0
  #store: Store
  /** Those that waited, by their ids. */
  readonly #waiters = new Map<string, Claim>()

  constructor(world: World, ledger: Ledger, flaw: Flaw) {
    this.#world = world
    this.#ledger = ledger
    this.#flaw = flaw
    this.#clock = {
      now: () => world.now + this.#leap,
      wall: () => this.time(),
      after: () => {
        throw new Error('a store keeps no timers')
      },
    }
    this.#store = this.#newStore()
    ledger.serverNow = () => this.#clock.now()
  }

  /** Refuses connections for `ms`. */
  refuse(ms: number): void {
    this.#isRefusing = true
    this.#world.after(ms, () => {
      this.#isRefusing = false
    })
  }

  /** Pauses for `ms`, and then executes the requests that arrived. */
  stop(ms: number): void {
    this.#running = this.#world.sleep(ms)
  }

  /** Resolves when a request that arrives now is read. Rejects if the server is down. */
  async reached(): Promise<void> {
    if (this.#isRefusing) throw new LeaseError('STORE_UNAVAILABLE', 'the connection was refused')
    await this.#running
  }

  /** The clock by which requests are late. */
  time(): number {
    return BEGINNING + this.#world.now + this.#leap + this.#step
  }

  /** Sets the wall clock, which does not affect leases. */
  step(ms: number): void {
    this.#step += ms
  }

  /** Moves time forward: leases expire early. */
  leap(ms: number): void {
    this.#leap += ms
    this.#ledger.leapt()
  }

  /** Restarts without data. */
  forget(): void {
    this.#store = this.#newStore()
    this.#ledger.forgot()
  }

  async acquire(claim: Claim, deadline: number, signal: AbortSignal): Promise<Grant | Busy | Late> {
    if (this.#isLate(deadline)) return { late: true }
    const now = this.#clock.now()
    const answer = await this.#store.acquire(claim, signal)
    this.#ledger.acquired(claim, answer, now)
    if (!answer.held && claim.queue) this.#waiters.set(claim.id, claim)
    return answer
  }

  /** Keeps positions while the name is held. A waiter for a free name asks soon. */
  async keep(name: string, ids: readonly string[], deadline: number, signal: AbortSignal): Promise<Positions | Late> {
    if (this.#isLate(deadline)) return { late: true }
    const records = await this.inspect({ name }, signal)
    const holder = records.find(({ state }) => state === 'held')
    const notes = records.filter(({ state }) => state === 'waiting').map(({ note }) => note)
    const placeOf = (id: string): number => notes.indexOf(this.#waiters.get(id)?.note ?? '')
    const waiting = ids.filter(id => placeOf(id) >= 0).toSorted((a, b) => placeOf(a) - placeOf(b))
    for (const id of holder ? waiting : []) {
      const claim = this.#waiters.get(id) as Claim
      this.#ledger.acquired(claim, await this.#store.acquire(claim, signal), this.#clock.now())
    }
    const [first] = waiting
    const rank = first === undefined ? 0 : placeOf(first)
    return { remaining: holder?.remaining ?? 0, rank, first, lost: ids.filter(id => placeOf(id) < 0) }
  }

  async renew(claim: Claim, deadline: number, signal: AbortSignal): Promise<Grant | undefined | Late> {
    if (this.#isLate(deadline)) return { late: true }
    const now = this.#clock.now()
    const answer = await this.#store.renew(claim, signal)
    this.#ledger.renewed(claim, answer, now)
    return answer
  }

  async annotate(claim: Claim, deadline: number, signal: AbortSignal): Promise<boolean | Late> {
    if (this.#isLate(deadline)) return { late: true }
    this.#ledger.annotated(claim, this.#clock.now())
    return this.#store.annotate(claim, signal)
  }

  async release(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    const now = this.#clock.now()
    const answer = await this.#store.release(key, signal)
    this.#ledger.released(key, answer, now)
    return answer
  }

  async break(
    name: string,
    parameters: BreakParameters,
    deadline: number,
    signal: AbortSignal,
  ): Promise<bigint | undefined | Late> {
    if (this.#isLate(deadline)) return { late: true }
    const now = this.#clock.now()
    const token = await this.#store.break(name, parameters, signal)
    this.#ledger.broken(name, parameters.token, token, now)
    return token
  }

  async watch(claim: Claim, wake: Wake, signal: AbortSignal): Promise<void> {
    await this.#store.watch?.(claim, wake, signal)
  }

  async inspect(query: Query, signal: AbortSignal): Promise<LeaseRecord[]> {
    return (await Array.fromAsync(this.#store.inspect(query, signal))).filter(isLease)
  }

  #isLate(deadline: number): boolean {
    if (this.time() <= deadline) return false
    this.refusedLate += 1
    return !this.#flaw.takesLate
  }

  #newStore(): Store {
    const store = memory({ clock: this.#clock })
    return this.#flaw.wrap?.(store) ?? store
  }
}
