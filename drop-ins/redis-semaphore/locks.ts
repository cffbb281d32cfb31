import type { RedisClient } from '../../src/stores/redis/index.ts'
import { Lock, type LockOptions } from './lock.ts'

/** Permits that one holder takes, at most: each is a slot in the lease, or a lease. */
const MOST_PERMITS = 64

/** One holder at a time, over one Redis. */
export class Mutex extends Lock {
  protected readonly _kind: string = 'mutex'

  constructor(client: RedisClient, key: string, options?: LockOptions) {
    super([client], options)
    if (!client) throw new Error('"client" is required')
    this._key = nameOf('mutex', key)
  }
}

/** Up to `limit` holders at a time, over one Redis. */
export class Semaphore extends Mutex {
  protected override readonly _kind: string = 'semaphore'

  constructor(client: RedisClient, key: string, limit: number, options?: LockOptions) {
    super(client, key, options)
    checkLimit(limit, options)
    this._key = nameOf('semaphore', key)
    this._limit = limit
  }
}

/** A semaphore of which each holder takes several permits, over one Redis. `permits` is 1 to 64. */
export class MultiSemaphore extends Semaphore {
  protected override readonly _kind: string = 'multi-semaphore'

  constructor(client: RedisClient, key: string, limit: number, permits: number, options?: LockOptions) {
    super(client, key, limit, options)
    checkPermits(permits)
    this._permits = permits
  }
}

/** One holder at a time, by a majority of independent servers. */
export class RedlockMutex extends Lock {
  protected readonly _kind: string = 'redlock-mutex'

  constructor(clients: readonly RedisClient[], key: string, options?: LockOptions) {
    super(clients, options)
    if (!clients || !Array.isArray(clients)) throw new Error('"clients" array is required')
    this._key = nameOf('mutex', key)
  }
}

/** Up to `limit` holders at a time, by a majority of independent servers. Waiters are served in no order. */
export class RedlockSemaphore extends RedlockMutex {
  protected override readonly _kind: string = 'redlock-semaphore'

  constructor(clients: readonly RedisClient[], key: string, limit: number, options?: LockOptions) {
    super(clients, key, options)
    checkLimit(limit, options)
    this._key = nameOf('semaphore', key)
    this._limit = limit
  }
}

/**
 * A semaphore of which each holder takes several permits, by a majority of independent servers. `permits` is 1 to 64.
 * Holders of one permit may starve it.
 */
export class RedlockMultiSemaphore extends RedlockSemaphore {
  protected override readonly _kind: string = 'redlock-multi-semaphore'

  constructor(clients: readonly RedisClient[], key: string, limit: number, permits: number, options?: LockOptions) {
    super(clients, key, limit, options)
    checkPermits(permits)
    this._permits = permits
  }
}

function nameOf(kind: 'mutex' | 'semaphore', key: unknown): string {
  if (!key) throw new Error('"key" is required')
  if (typeof key !== 'string') throw new Error('"key" must be a string')
  return `${kind}:${key}`
}

function checkLimit(limit: unknown, { alongside }: LockOptions = {}): void {
  if (!limit) throw new Error('"limit" is required')
  if (typeof limit !== 'number') throw new Error('"limit" must be a number')
  if (alongside)
    throw new Error(
      '{ alongside: true } is for mutexes. Split the limit of a semaphore between old and new processes instead',
    )
}

function checkPermits(permits: unknown): void {
  if (!permits) throw new Error('"permits" is required')
  if (typeof permits !== 'number') throw new Error('"permits" must be a number')
  if (permits > MOST_PERMITS) throw new Error(`"permits" must be at most ${MOST_PERMITS}, not ${permits}`)
}
