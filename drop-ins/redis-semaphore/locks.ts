import type { Lease, Locks } from '../../src/index.ts'
import type { RedisClient } from '../../src/stores/redis/index.ts'
import { type Acquiring, Lock, type LockOptions } from './lock.ts'

const MOST_PERMITS = 16

/** One holder at a time, over one Redis. */
export class Mutex extends Lock {
  protected readonly _kind: string = 'mutex'
  /** The name of the lease. A subclass may set another. */
  protected _key: string
  readonly #client: RedisClient

  constructor(client: RedisClient, key: string, options?: LockOptions) {
    super(options)
    if (!client) throw new Error('"client" is required')
    checkKey(key)
    this.#client = client
    this._key = `mutex:${key}`
  }

  protected get clients(): readonly RedisClient[] {
    return [this.#client]
  }

  protected _claim(locks: Locks, how: Acquiring): Promise<Lease> {
    return locks.acquire(this._key, how)
  }
}

/** Up to `limit` holders at a time, over one Redis. `limit` is 1 to 16. */
export class Semaphore extends Mutex {
  protected override readonly _kind: string = 'semaphore'
  protected override _key: string
  protected readonly _limit: number

  constructor(client: RedisClient, key: string, limit: number, options?: LockOptions) {
    super(client, key, options)
    checkLimit(limit, options)
    this._key = `semaphore:${key}`
    this._limit = limit
  }

  protected override get isShared(): boolean {
    return true
  }

  protected override _claim(locks: Locks, how: Acquiring): Promise<Lease> {
    return permits(locks, this._key, this._limit, 1, how)
  }
}

/** A semaphore of which each holder takes several permits, over one Redis. */
export class MultiSemaphore extends Semaphore {
  protected override readonly _kind: string = 'multi-semaphore'
  protected readonly _permits: number

  constructor(client: RedisClient, key: string, limit: number, permits: number, options?: LockOptions) {
    super(client, key, limit, options)
    checkPermits(permits)
    this._permits = permits
  }

  protected override _claim(locks: Locks, how: Acquiring): Promise<Lease> {
    return permits(locks, this._key, this._limit, this._permits, how)
  }
}

/** One holder at a time, by a majority of independent servers. */
export class RedlockMutex extends Lock {
  protected readonly _kind: string = 'redlock-mutex'
  /** The name of the lease. A subclass may set another. */
  protected _key: string
  readonly #clients: readonly RedisClient[]

  constructor(clients: readonly RedisClient[], key: string, options?: LockOptions) {
    super(options)
    if (!clients || !Array.isArray(clients)) throw new Error('"clients" array is required')
    checkKey(key)
    this.#clients = clients
    this._key = `mutex:${key}`
  }

  protected get clients(): readonly RedisClient[] {
    return this.#clients
  }

  protected _claim(locks: Locks, how: Acquiring): Promise<Lease> {
    return locks.acquire(this._key, how)
  }
}

/** Up to `limit` holders at a time, by a majority of independent servers. `limit` is 1 to 16. */
export class RedlockSemaphore extends RedlockMutex {
  protected override readonly _kind: string = 'redlock-semaphore'
  protected override _key: string
  protected readonly _limit: number

  constructor(clients: readonly RedisClient[], key: string, limit: number, options?: LockOptions) {
    super(clients, key, options)
    checkLimit(limit, options)
    this._key = `semaphore:${key}`
    this._limit = limit
  }

  protected override get isShared(): boolean {
    return true
  }

  protected override _claim(locks: Locks, how: Acquiring): Promise<Lease> {
    return permits(locks, this._key, this._limit, 1, how)
  }
}

/** A semaphore of which each holder takes several permits, by a majority of independent servers. */
export class RedlockMultiSemaphore extends RedlockSemaphore {
  protected override readonly _kind: string = 'redlock-multi-semaphore'
  protected readonly _permits: number

  constructor(clients: readonly RedisClient[], key: string, limit: number, permits: number, options?: LockOptions) {
    super(clients, key, limit, options)
    checkPermits(permits)
    this._permits = permits
  }

  protected override _claim(locks: Locks, how: Acquiring): Promise<Lease> {
    return permits(locks, this._key, this._limit, this._permits, how)
  }
}

async function permits(locks: Locks, name: string, limit: number, count: number, how: Acquiring): Promise<Lease> {
  return locks.semaphore(name, { limit }).acquire({ ...how, permits: count })
}

function checkKey(key: unknown): void {
  if (!key) throw new Error('"key" is required')
  if (typeof key !== 'string') throw new Error('"key" must be a string')
}

function checkLimit(limit: unknown, { alongside }: LockOptions = {}): void {
  if (!limit) throw new Error('"limit" is required')
  if (typeof limit !== 'number') throw new Error('"limit" must be a number')
  if (limit > MOST_PERMITS)
    throw new Error(`"limit" must be at most ${MOST_PERMITS}: a waiter stands in the queue of each permit`)
  if (alongside)
    throw new Error(
      '{ alongside: true } is for mutexes. Split the limit of a semaphore between old and new processes instead',
    )
}

function checkPermits(permits: unknown): void {
  if (!permits) throw new Error('"permits" is required')
  if (typeof permits !== 'number') throw new Error('"permits" must be a number')
}
