import { setTimeout as sleep } from 'node:timers/promises'
import { type Lease, LeaseError, type LeaseSet, type Locks } from '../../src/index.ts'
import type { RedisClient } from '../../src/stores/redis/index.ts'
import { type AlongsideSettings, locksOf, type Opening, type StoreSettings } from '../shared/clients.ts'
import { Holding, termOf } from '../shared/term.ts'
import { LostLockError, TimeoutError } from './errors.ts'
import { defaultTimeoutOptions, type Identity, identifierOf, type TimeoutOptions, waitOf } from './options.ts'
import { acquireTickets } from './several-tickets.ts'

/** Called when the lock is lost while it is renewed. */
export type LockLostCallback = (this: Lock, error: LostLockError) => void

export interface LockOptions extends TimeoutOptions, Identity, StoreSettings, AlongsideSettings {
  /** @default throws the error, which is an unhandled rejection */
  onLockLost?: LockLostCallback | undefined
}

/** How a lease is acquired for a lock. */
interface Acquiring {
  readonly ttl: number
  readonly wait: number
  readonly heartbeat: boolean
  readonly note: string
  readonly signal: AbortSignal | undefined
}

/** What identifiers are shown: notes have no control characters and at most 255 bytes. */
const SHOWABLE = /^[\x20-\x7e]{1,255}$/

/** What all mutexes and semaphores have in common. */
export abstract class Lock {
  /** Identifies the lock for people. */
  readonly identifier: string
  protected abstract readonly _kind: string
  /** The name of the lease. A subclass may set another. */
  protected _key = ''
  /** How many may hold it at a time; 0 for a mutex. */
  protected _limit = 0
  /** How many permits each holder takes. */
  protected _permits = 1
  readonly #clients: readonly RedisClient[]
  readonly #options: LockOptions
  readonly #lockTimeout: number
  readonly #isRenewed: boolean
  readonly #onLockLost: LockLostCallback | undefined
  #holding: Holding | undefined
  #acquiring: Promise<boolean> | undefined
  /** Is a loss reported? Not once renewals were stopped, because the lock then ends as planned. */
  #reportsLoss = false

  /** Throws for options that cannot be used. */
  constructor(clients: readonly RedisClient[], options: LockOptions = {}) {
    const { lockTimeout = defaultTimeoutOptions.lockTimeout, refreshInterval = lockTimeout, onLockLost } = options
    this.identifier = identifierOf(options)
    this.#clients = clients
    this.#options = options
    this.#lockTimeout = lockTimeout
    this.#isRenewed = refreshInterval > 0
    this.#onLockLost = onLockLost
  }

  /** False as soon as the lock is lost, or its release begins. Reads the clock. */
  get isAcquired(): boolean {
    return this.lease !== undefined
  }

  /** The lease, while the lock is held: with `signal`, `assertHeld()` and `token`. */
  get lease(): Lease | undefined {
    const holding = this.#holding
    return holding && holding.lease.remaining > 0 ? holding.first : undefined
  }

  /** The fencing token, while the lock is held; of several permits that of the first. */
  get token(): bigint | undefined {
    return this.lease?.token
  }

  /** Waits up to `acquireTimeout`. Rejects `TimeoutError`, and as `tryAcquire`. */
  async acquire(abortSignal?: AbortSignal): Promise<void> {
    if (!(await this.tryAcquire(abortSignal))) throw new TimeoutError(`Acquire ${this._kind} ${this._key} timeout`)
  }

  /**
   * Waits up to `acquireTimeout`, and resolves to false if the lock was not acquired by then. Rejects with the reason of
   * the signal, or with a `LeaseError`; over several servers their outage counts as waiting.
   */
  async tryAcquire(abortSignal?: AbortSignal): Promise<boolean> {
    abortSignal?.throwIfAborted()
    const end = performance.now() + (waitOf(this.#options) ?? 0)
    if (!this.#isShared) return await this.#tryAcquire(end, abortSignal)
    // One object has one identifier, so it holds its permits once, also if it is acquired twice at the same time.
    for (let isLater = false; this.#acquiring; isLater = true) {
      const other = this.#acquiring
      await until(other, abortSignal)
      // The time of this call is over, and the other one has asked since it began: its answer is that to this call.
      if (isLater && performance.now() >= end && (await other.catch(throwUnlessAborted)) === false) return false
    }
    const acquiring = this.#tryAcquireAgain(end, abortSignal)
    this.#acquiring = acquiring.finally(() => {
      this.#acquiring = undefined
    })
    return await this.#acquiring
  }

  /** Renews what is held. */
  async #tryAcquireAgain(end: number, abortSignal: AbortSignal | undefined): Promise<boolean> {
    const holding = this.#holding
    if (this.isAcquired) await holding?.extend(this.#lockTimeout).catch(throwUnlessOver)
    if (!this.isAcquired) {
      if (holding) await until(holding.lease.ended, abortSignal) // another task may be releasing it
      return this.#tryAcquire(end, abortSignal)
    }
    if (this.#isRenewed && !this.#reportsLoss) this.#holding?.keep(this.#lockTimeout) // after stopRefresh()
    this.#reportsLoss = this.#isRenewed
    return true
  }

  /** Waits until `end`, by `performance.now()`. */
  async #tryAcquire(end: number, abortSignal: AbortSignal | undefined): Promise<boolean> {
    if (waitOf(this.#options) === undefined) return false
    for (;;) {
      try {
        this.#hold(await this.#claim(Math.max(end - performance.now(), 0), abortSignal))
        return true
      } catch (error) {
        if (LeaseError.is(error, 'BUSY')) return false
        if (!LeaseError.is(error) || !error.retryable) throw error
        const left = end - performance.now()
        if (left <= 0 && this.#clients.length === 1) throw error
        if (left <= 0) return false
        const { retryInterval = defaultTimeoutOptions.retryInterval } = this.#options
        await until(sleep(Math.min(retryInterval, left)), abortSignal)
      }
    }
  }

  /** Stops the renewals: the lock ends after at most `lockTimeout`. */
  stopRefresh(): void {
    this.#reportsLoss = false
    if (this.#isRenewed) this.#holding?.stopRenewing()
  }

  /** Releases the lock, if it is held. Rejects `LeaseError` `OUTCOME_UNKNOWN` if the one server does not answer. */
  async release(): Promise<void> {
    const holding = this.#holding
    if (!holding) return
    if (!this.#onLockLost) this.#reportsLoss = false // nobody would catch the error
    const end = await holding.release()
    if (this.#holding === holding) this.#holding = undefined
    if (end !== 'unknown' || this.#clients.length > 1) return
    throw new LeaseError('OUTCOME_UNKNOWN', `the release of ${this._key} was not confirmed; the lock ends by itself`)
  }

  /** Is it one of several permits? Acquiring it again renews it. */
  get #isShared(): boolean {
    return this._limit !== 0
  }

  async #lease(locks: Locks, how: Acquiring): Promise<Lease | LeaseSet> {
    if (!this.#isShared) return locks.acquire(this._key, how)
    const several = { name: this._key, limit: this._limit, permits: this._permits }
    if (this._permits > 1 && this.#clients.length > 1) return acquireTickets(locks, several, how)
    return locks.semaphore(this._key, { limit: this._limit }).acquire({ ...how, permits: this._permits })
  }

  async #claim(wait: number, signal: AbortSignal | undefined): Promise<Holding> {
    const shared = locksOf(this.#clients, openingOf(this.#options, this.#isShared))
    const { guarantees } = shared.locks.store
    const { ttl } = termOf(this.#lockTimeout, guarantees)
    const note = SHOWABLE.test(this.identifier) ? this.identifier : ''
    const claiming = this.#lease(shared.locks, { ttl, wait, heartbeat: this.#isRenewed, note, signal })
    void shared.use(claiming.then(lease => lease.ended))
    const holding = new Holding(await claiming, guarantees, this.#isRenewed)
    if (!this.#isRenewed) holding.last(this.#lockTimeout)
    return holding
  }

  #hold(holding: Holding): void {
    this.#holding = holding
    this.#reportsLoss = this.#isRenewed
    const { signal } = holding.lease
    const onLoss = (): void => void this.#lose(holding, signal.reason)
    // The process may have been paused since the grant.
    if (signal.aborted) onLoss()
    else signal.addEventListener('abort', onLoss, { once: true })
  }

  /** As an async function, so that an error of the callback is an unhandled rejection. */
  async #lose(holding: Holding, cause: unknown): Promise<void> {
    if (this.#holding !== holding) return
    this.#holding = undefined
    if (!this.#reportsLoss) return
    const error = new LostLockError(`Lost ${this._kind} for key ${this._key}`, { cause })
    if (!this.#onLockLost) throw error
    this.#onLockLost(error)
  }
}

function openingOf(options: LockOptions, isShared: boolean): Opening {
  const { prefix, nodeTimeout, maxTtl, trustRestarted, alongside } = options
  return { prefix, nodeTimeout, maxTtl, trustRestarted, alongside, isShared }
}

/** Resolves once `settled` has, and rejects with the reason of the signal if that comes first. */
async function until(settled: Promise<unknown>, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const end = (): void => resolve()
  signal?.addEventListener('abort', end)
  await Promise.race([settled.catch(() => {}), promise])
  signal?.removeEventListener('abort', end)
  signal?.throwIfAborted()
}

/** Does nothing if a call ended by its own signal, whose reason is no `LeaseError`. */
function throwUnlessAborted(error: unknown): void {
  if (LeaseError.is(error)) throw error
}

/** Does nothing if the lease was lost or released. */
function throwUnlessOver(error: unknown): void {
  if (!LeaseError.is(error, 'LEASE_LOST') && !LeaseError.is(error, 'CLOSED')) throw error
}
