import { LeaseError } from '../contract/errors.ts'
import type { Lease } from '../contract/lease.ts'
import type { Busy, Claim, ClaimKey, Grant, Guarantees, LeaseRecord, Query, Store, Wake } from '../contract/store.ts'
import { type Locks, StoreLocks } from '../core/locks.ts'
import type { CloseOptions, LeaseOptions, LocksDefaults } from '../core/options.ts'
import { memory } from '../stores/memory/index.ts'
import { VirtualClock } from './clock.ts'

/** `Locks` for unit tests: in memory, on a clock that stands still until it is advanced, with losses on demand. */
export interface TestLocks extends Locks {
  /**
   * Lets `ms` pass: renewals, waits, time-outs and losses that fall due happen in order. Nothing that takes time goes on
   * without it, so start such a call, advance, then await it.
   */
  advance(ms: number): Promise<void>
  /** Lets `ms` pass at once, as when the event loop was blocked: a lease older than its ttl is lost. */
  block(ms: number): Promise<void>
  /** Another process takes `name` and renews it until its lease is released. Rejects if the name is held. */
  holdAsOther(name: string, options?: LeaseOptions): Promise<Lease>
  /** The lease that these locks hold on `name` is gone at the store, and its holder is told now. */
  lose(name: string): Promise<void>
  /** Every request of these locks fails from now on, by default with `STORE_UNAVAILABLE`; answers how to mend it. */
  failStore(error?: Error): () => void
  /** Needs no `advance`: what it takes passes at once on the virtual clock. @default no grace */
  close(options?: CloseOptions): Promise<void>
}

/** Milliseconds of virtual time that pass at once while these locks close. */
const CLOSING_STEP = 100

/** Fresh names, held by nobody, for one test. */
export function testLocks(defaults: LocksDefaults = {}): TestLocks {
  return new StagedLocks(new VirtualClock(), defaults)
}

class StagedLocks extends StoreLocks implements TestLocks {
  readonly #clock: VirtualClock
  readonly #store: StagedStore
  readonly #other: StoreLocks

  constructor(clock: VirtualClock, defaults: LocksDefaults) {
    const server = memory({ clock })
    const store = new StagedStore(server)
    const environment = { clock, random: () => 0.5 } // no chance: a test sees the same each time
    super(store, { owner: `test:${process.pid}`, ...defaults }, environment)
    this.#clock = clock
    this.#store = store
    this.#other = new StoreLocks(server, { owner: 'other' }, environment)
  }

  advance(ms: number): Promise<void> {
    return this.#clock.advance(ms)
  }

  block(ms: number): Promise<void> {
    return this.#clock.block(ms)
  }

  async holdAsOther(name: string, options: LeaseOptions = {}): Promise<Lease> {
    const lease = await this.#other.tryAcquire(name, options)
    if (lease) return lease
    const { holder } = await this.#other.inspect(name)
    const message = `${JSON.stringify(name)} is held by ${holder?.owner ?? 'nobody, but waited for'}: release it first`
    throw new LeaseError('INVALID_ARGUMENT', message, { lease: name, holder })
  }

  async lose(name: string): Promise<void> {
    const lease = this.heldLease(name)
    if (!lease)
      throw new LeaseError('INVALID_ARGUMENT', `these locks do not hold ${JSON.stringify(name)}: acquire it first`)
    await this.#other.break(name)
    const failAgain = this.#store.mend()
    await lease.extend().catch(() => {}) // the request by which a holder learns of it
    failAgain()
  }

  failStore(
    error: Error = new LeaseError('STORE_UNAVAILABLE', 'the store fails because a test wants it to'),
  ): () => void {
    return this.#store.fail(error)
  }

  override async close(options: CloseOptions = {}): Promise<void> {
    let closed = false
    const closing = super.close({ ...options, grace: options.grace ?? 0 }).finally(() => {
      closed = true
    })
    // No time at all if nothing needs it; a store that fails is asked for longer than the grace.
    for (let step = 0; !closed; step = CLOSING_STEP) await this.#clock.advance(step)
    await closing
  }
}

/** A store that fails on demand. */
class StagedStore implements Store {
  readonly kind = 'test'
  readonly guarantees: Guarantees
  readonly #server: Store
  #error: Error | undefined

  constructor(server: Store) {
    this.#server = server
    this.guarantees = server.guarantees
  }

  fail(error: Error): () => void {
    this.#error = error
    return () => void this.mend()
  }

  /** Answers how to undo it. */
  mend(): () => void {
    const error = this.#error
    this.#error = undefined
    return () => {
      this.#error = error
    }
  }

  async acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    return this.#reached().acquire(claim, signal)
  }

  async renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    return this.#reached().renew(claim, signal)
  }

  async annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    return this.#reached().annotate(claim, signal)
  }

  async release(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    return this.#reached().release(key, signal)
  }

  async watch(key: ClaimKey, wake: Wake, signal: AbortSignal): Promise<void> {
    return this.#reached().watch?.(key, wake, signal)
  }

  async *inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    yield* this.#reached().inspect(query, signal)
  }

  async break(name: string, by: string, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#reached().break(name, by, signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  #reached(): Store {
    if (this.#error) throw this.#error
    return this.#server
  }
}
