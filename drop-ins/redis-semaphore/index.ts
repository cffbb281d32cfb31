export { LostLockError, TimeoutError } from './errors.ts'
export type { LockLostCallback, LockOptions } from './lock.ts'
export { MultiSemaphore, Mutex, RedlockMultiSemaphore, RedlockMutex, RedlockSemaphore, Semaphore } from './locks.ts'
export { defaultTimeoutOptions, type TimeoutOptions } from './options.ts'
