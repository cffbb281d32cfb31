/**
 * Time travel with Vitest: hours of a lease pass at once, and the fence refuses a stale holder.
 *
 *     npx vitest run examples/vitest.test.ts
 */
import { expect, test } from 'vitest'
import type { Lease } from '../src/index.ts' // in your project: 'holdfast'
import { type TestFence, testFence, testLocks } from '../src/testing/index.ts' // 'holdfast/testing'

/** The code under test: it writes through a fence. */
async function book(fence: TestFence<string[]>, lease: Lease, entry: string): Promise<void> {
  await fence.transaction(lease, async ledger => void ledger.push(entry))
}

test('a lease is renewed for hours', async () => {
  const locks = testLocks({ ttl: 10_000 })
  const lease = await locks.acquire('ledger')
  await locks.advance(3 * 60 * 60_000)
  lease.assertHeld()
})

test('a newer holder has written, so the write is refused', async () => {
  const ledger: string[] = []
  const fence = testFence({ transaction: ledger })
  const lease = await testLocks().acquire('ledger')
  await book(fence, lease, 'rent')
  await fence.marks.raise('ledger', { epoch: 0, token: lease.token + 1n }) // the newer holder
  await expect(book(fence, lease, 'rent')).rejects.toMatchObject({ code: 'STALE_TOKEN' })
  expect(ledger).toEqual(['rent'])
})

test('an event loop that was blocked for longer than the ttl loses the lease', async () => {
  const locks = testLocks({ ttl: 10_000 })
  const lease = await locks.acquire('ledger')
  await locks.block(20_000)
  await expect(book(testFence({ transaction: [] }), lease, 'rent')).rejects.toMatchObject({ code: 'LEASE_LOST' })
})
