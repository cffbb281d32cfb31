import { setTimeout } from 'node:timers/promises'
import { isBusy } from './failure.ts'

/** The mean of the random pause between two attempts, in milliseconds. */
const PAUSE = 1.5

/** Calls `use`, and retries for up to `wait` ms while another connection has locked the database. */
export async function whenUnlocked<T>(use: () => T, wait: number, signal: AbortSignal | undefined): Promise<T> {
  for (const start = performance.now(); ; ) {
    signal?.throwIfAborted()
    try {
      return use()
    } catch (error) {
      if (!isBusy(error) || performance.now() - start >= wait) throw error
    }
    await setTimeout(2 * PAUSE * Math.random())
  }
}
