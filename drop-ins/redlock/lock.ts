import type { Lease, LeaseSet } from '../../src/index.ts'
import type { Holding } from '../shared/term.ts'
import type { ExecutionResult, ExecutionStats } from './execution.ts'
import type { Settings } from './settings.ts'

const holdings = new WeakMap<Lock, Holding>()

/** What a lock needs of its `Redlock`. */
export interface Locking {
  release(lock: Lock): Promise<ExecutionResult>
  extend(lock: Lock, duration: number, settings?: Settings): Promise<Lock>
}

/** A lock on some resources, until it expires or is released. */
export class Lock {
  readonly redlock: Locking
  readonly resources: string[]
  /** Identifies the lock in this process. With `alongside`, the key of the first resource has this value. */
  readonly value: string
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>
  readonly settings: Settings | undefined
  #expiration: number

  constructor(
    redlock: Locking,
    resources: string[],
    value: string,
    attempts: ReadonlyArray<Promise<ExecutionStats>>,
    expiration: number,
    settings?: Settings,
  ) {
    this.redlock = redlock
    this.resources = resources
    this.value = value
    this.attempts = attempts
    this.#expiration = expiration
    this.settings = settings
  }

  /**
   * When the lock expires, in ms since 1970; 0 once it was released or extended. Within `using` it moves by itself. It is past
   * once the lock was lost.
   */
  get expiration(): number {
    const holding = holdings.get(this)
    if (!holding || this.#expiration === 0) return this.#expiration
    const { remaining } = holding.lease
    if (remaining <= 0) return Math.min(this.#expiration, Date.now() - 1)
    return holding.isOpenEnded ? Math.floor(Date.now() + remaining) : this.#expiration
  }

  set expiration(expiration: number) {
    this.#expiration = expiration
  }

  /** The lease; of several resources the set of their leases. Fences take both. Throws if this lock was made by hand. */
  get lease(): Lease | LeaseSet {
    return heldBy(this).lease
  }

  /** The fencing token; of several resources that of the first. Throws if this lock was made by hand. */
  get token(): bigint {
    return heldBy(this).first.token
  }

  /** Rejects `ExecutionError` if the lock is no longer held. */
  release(): Promise<ExecutionResult> {
    return this.redlock.release(this)
  }

  /** From now on it lasts for `duration` ms. Resolves to a lock that replaces this one. Rejects `ExecutionError`. */
  extend(duration: number): Promise<Lock> {
    return this.redlock.extend(this, duration, this.settings)
  }
}

/** `lock` is a lock on this. */
export function bind(lock: Lock, holding: Holding): Lock {
  holdings.set(lock, holding)
  return lock
}

export function holdingOf(lock: Lock): Holding | undefined {
  return holdings.get(lock)
}

function heldBy(lock: Lock): Holding {
  const holding = holdings.get(lock)
  if (!holding) throw new Error('this lock was not acquired by this process: it has no lease')
  return holding
}
