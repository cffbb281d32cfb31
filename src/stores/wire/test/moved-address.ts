import { expect } from 'vitest'
import { until } from '../../../../lab/servers/until.ts'
import { acquire, claimOf, hold, signal } from '../../../../test/support.ts'
import type { Store } from '../../../contract/store.ts'

/** Milliseconds. Nothing ends or is asked for by itself meanwhile. */
const ttl = 60_000

/** Two stores of two processes, over one address. */
export interface Moving {
  readonly waits: Store
  readonly holds: Store
  /** Another server takes over with the data, and new connections to the address reach that. The old ones stay open. */
  failOver(): Promise<unknown>
  /** Is anybody subscribed at the new server? */
  isSubscribed(): Promise<boolean>
}

/** A waiter is notified by the server to which the address leads since the failover. */
export async function followsTheAddress({ waits, holds, failOver, isSubscribed }: Moving): Promise<void> {
  const [holder, waiter] = [claimOf('moved', { ttl }), claimOf('moved', { ttl, queue: true })]
  await hold(holds, holder)
  await acquire(waits, waiter)
  let wakes = 0
  await waits.watch?.(waiter, () => (wakes += 1), signal)
  await failOver()
  const limit = 60_000
  const listens = async (): Promise<boolean> => {
    const answer = await acquire(waits, waiter).catch(() => undefined)
    return answer?.held === false && answer.listens === true && (await isSubscribed())
  }
  await until('it is subscribed at the new server', listens, { limit })
  const before = wakes
  await until('the name is released', () => holds.release(holder, signal).catch(() => undefined), { limit })
  await until('it is woken', () => wakes > before)
  expect(await acquire(waits, waiter)).toMatchObject({ held: true })
}
