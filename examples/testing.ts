/**
 * Unit tests of code that uses leases: in memory, with a clock that the test controls and losses on demand. They work with
 * any test runner; this one is Node's. There is no server and nothing to close.
 *
 *     ./script/node examples/testing.ts
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LeaseError, type Locks } from '../src/index.ts' // in your project: 'holdfast'
import { testLocks } from '../src/testing/index.ts' // 'holdfast/testing'

/** The code under test: sends all mail in the outbox, and stops if the lease is lost. */
async function flush(locks: Locks, outbox: string[], send: (mail: string) => Promise<void>): Promise<number> {
  return await locks.using('outbox', { wait: 1_000 }, async lease => {
    let sent = 0
    for (const mail of [...outbox]) {
      lease.assertHeld()
      await send(mail)
      outbox.shift()
      sent += 1
    }
    return sent
  })
}

const code = (expected: string) => (error: unknown) => LeaseError.from(error)?.code === expected

test('sends all mail while it holds the outbox', async () => {
  const locks = testLocks()
  assert.equal(await flush(locks, ['a', 'b'], async () => {}), 2)
})

test('gives up when another replica holds the outbox', async () => {
  const locks = testLocks()
  await locks.holdAsOther('outbox')
  const flushed = assert.rejects(
    flush(locks, ['a'], async () => {}),
    code('BUSY'),
  )
  await locks.advance(1_000) // the test moves the clock
  await flushed
})

test('stops between two mails when the lease is lost', async () => {
  const locks = testLocks()
  const outbox = ['a', 'b', 'c']
  const flushed = flush(locks, outbox, async mail => {
    if (mail === 'b') await locks.lose('outbox')
  })
  await assert.rejects(flushed, code('LEASE_LOST'))
  assert.deepEqual(outbox, ['c'])
})

test('is notified by its deadline when the store is down', async () => {
  const locks = testLocks()
  const lease = await locks.acquire('outbox', { ttl: 3_000 })
  locks.failStore()
  await locks.advance(2_000)
  lease.assertHeld() // failed renewals are retried until the deadline
  await locks.advance(1_000)
  assert.throws(() => lease.assertHeld(), code('LEASE_LOST'))
})
