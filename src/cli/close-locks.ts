import type { Locks } from '../index.ts'
import { messageOf } from './failure.ts'
import type { Output } from './output.ts'

/** Closes the store. An error is only a warning: the command is done, and its exit code stays. */
export async function closeLocks(locks: Locks, output: Output): Promise<void> {
  try {
    await locks.close({ grace: 0 }) // a lease that is still held ends by its ttl
  } catch (error) {
    output.failed('close_failed', `the store was not closed: ${messageOf(error)}`)
  }
}
