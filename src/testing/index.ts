import { checkNoMore } from '../contract/check.ts'
import type { Environment } from '../contract/environment.ts'
import { LeaseError } from '../contract/errors.ts'
import type { Lease } from '../contract/lease.ts'
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
} from '../contract/store.ts'
import type { Family } from '../core/family.ts'
import type { CloseOptions, LeaseOptions, LocksDefaults } from '../core/options.ts'
import { type Locks, StoreLocks } from '../create-locks.ts'
import { memory } from '../stores/memory/index.ts'
import { VirtualClock } from './clock.ts'

export type {
  FenceCallOptions,
  FenceOptions,
  Holder,
  Holders,
  KeptMarks,
  Mark,
  MarkRecord,
  Marks,
  Shown,
  TestFence,
  TestFenceOptions,
  TransactionFence,
} from './fence.ts'
export { testFence } from './fence.ts'

/** `Locks` for unit tests: in memory, with a clock that moves only when it is advanced, and with losses on demand. */
export interface TestLocks extends Locks {
  /**
   * Lets `ms` pass. Due renewals, waits, timeouts and losses happen in order. A call that takes time makes no progress
   * otherwise: start it, advance, then await it. Rejects `INVALID_ARGUMENT`.
   */
  advance(ms: number): Promise<void>
  /** Lets `ms` pass at once, as when the event loop is blocked. A lease older than its ttl is then lost. */
  block(ms: number): Promise<void>
  /** Locks of another process on the same store: what they hold, these locks cannot acquire. They do not fail or lose. */
  readonly other: Locks
  /** Acquires `name` as another process, and renews it until that lease is released. Rejects if the name is busy. */
  holdAsOther(name: string, options?: LeaseOptions): Promise<Lease>
  /**
   * Ends the lease that these locks hold on `name` at the store, and notifies its holder. Of several permits it ends the
   * oldest. Rejects if they hold none.
   */
  lose(name: string): Promise<void>
  /**
   * Makes every request of these locks fail, by default with `STORE_UNAVAILABLE`. Returns a function that restores the
   * store.
   */
  failStore(error?: Error): () => void
  /** Locks over the same store and clock; `lose` and `failStore` of each work for all of them. */
  with(defaults: LocksDefaults): TestLocks
  /** Closes the locks. Needs no `advance`: the clock advances by itself meanwhile. @default no grace */
  close(options?: CloseOptions): Promise<void>
}

/** Milliseconds by which the virtual clock advances at a time while these locks close. */
const CLOSING_STEP = 100

/** Locks for one test, with names of their own that nobody holds. */
export function testLocks(defaults: LocksDefaults = {}): TestLocks {
  const clock = new VirtualClock()
  const server = memory({ clock })
  const environment = { clock, random: () => 0.5 } // every run of a test behaves the same
  const other = new StoreLocks(server, { owner: 'other' }, environment)
  const stage = { clock, store: new StagedStore(server), other, environment }
  return new StagedLocks(stage, { owner: `test:${process.pid}`, ...defaults })
}

/** The parts that the locks of one test share. */
interface Stage {
  readonly clock: VirtualClock
  readonly store: StagedStore
  readonly other: Locks
  readonly environment: Environment
}

class StagedLocks extends StoreLocks implements TestLocks {
  readonly #stage: Stage
  readonly #clock: VirtualClock
  readonly #store: StagedStore
  readonly other: Locks

  constructor(stage: Stage, defaults: LocksDefaults, family?: Family) {
    super(stage.store, defaults, stage.environment, undefined, family)
    this.#stage = stage
    this.#clock = stage.clock
    this.#store = stage.store
    this.other = stage.other
  }

  override with(defaults: LocksDefaults): TestLocks {
    return new StagedLocks(this.#stage, this.derived(defaults), this.family)
  }

  advance(ms: number): Promise<void> {
    return this.#clock.advance(ms)
  }

  block(ms: number): Promise<void> {
    return this.#clock.block(ms)
  }

  async holdAsOther(name: string, options: LeaseOptions = {}): Promise<Lease> {
    const lease = await this.other.tryAcquire(name, options)
    if (lease) return lease
    const {
      holders: [holder],
    } = await this.other.inspect(name)
    const why = holder ? `held by ${holder.owner}: release it first` : 'free, but others wait for it: end their waits'
    const message = `${JSON.stringify(name)} is ${why}`
    throw new LeaseError('BUSY', message, { leaseName: name, holder, waited: 0 })
  }

  async lose(name: string, ...more: readonly unknown[]): Promise<void> {
    checkNoMore(more, 'lose(name)', 'it takes only the name')
    const lease = this.heldLease(name)
    if (!lease)
      throw new LeaseError(
        'INVALID_ARGUMENT',
        `these locks do not hold ${JSON.stringify(name)}: acquire it first, or await advance(0) after the call that does`,
      )
    await this.other.break(lease.name, { token: lease.token })
    const failAgain = this.#store.restore()
    await lease.extend().catch(() => {}) // its answer notifies the holder
    failAgain()
  }

  failStore(error: Error = new LeaseError('STORE_UNAVAILABLE', 'the test called failStore()')): () => void {
    return this.#store.fail(error)
  }

  override async close(options: CloseOptions = {}): Promise<void> {
    let closed = false
    const closing = super.close({ ...options, grace: options.grace ?? 0 }).finally(() => {
      closed = true
    })
    // The first step is 0: without leases no time passes. With a failing store it takes longer than the grace.
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
    return () => {
      if (this.#error === error) this.#error = undefined // not a failure that began later
    }
  }

  /** Stops the failure. Returns a function that makes the store fail again. */
  restore(): () => void {
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

  async watch(claim: Claim, wake: Wake, signal: AbortSignal): Promise<void> {
    return this.#reached().watch?.(claim, wake, signal)
  }

  async *inspect(query: Query, signal: AbortSignal): ReturnType<Store['inspect']> {
    yield* this.#reached().inspect(query, signal)
  }

  async break(name: string, parameters: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#reached().break(name, parameters, signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  #reached(): Store {
    if (this.#error) throw this.#error
    return this.#server
  }
}
