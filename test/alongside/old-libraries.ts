import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import { ROOT } from '../script-node.ts'

// The benchmark measures the old libraries as well, so they are installed there.
const load = createRequire(join(ROOT, 'bench/package.json'))

interface OldLock {
  readonly expiration: number
  extend(duration: number): Promise<OldLock>
  release(): Promise<unknown>
}

/** What redlock 5 and its successors have in common. */
export interface OldRedlock {
  acquire(resources: string[], duration: number): Promise<OldLock>
  on(event: 'error', listener: () => void): unknown
}

export interface OldMutex {
  readonly isAcquired: boolean
  tryAcquire(): Promise<boolean>
  release(): Promise<void>
}

type RedlockClass = new (clients: Redis[], settings: object) => OldRedlock

export function oldRedlock(): RedlockClass {
  return (load('redlock5') as { default: RedlockClass }).default
}

export function oldSesamecareRedlock(): RedlockClass {
  return (load('@sesamecare-oss/redlock') as { Redlock: RedlockClass }).Redlock
}

export function oldRedisSemaphore(): {
  Mutex: new (client: Redis, key: string, options: object) => OldMutex
  RedlockMutex: new (clients: Redis[], key: string, options: object) => OldMutex
} {
  return load('redis-semaphore') as ReturnType<typeof oldRedisSemaphore>
}
