import assert from 'node:assert/strict'
import { createLocks } from '../../src/index.ts'
import { margin } from '../../src/store.ts'
import { type Case, casesOf } from './case.ts'
import { block, inTime, sleep, TooSlow, until } from './timing.ts'
import { Wire } from './wire.ts'

/** The core over this store: a lease while it is held, and how it ends. */
export const holdingCases: Case[] = [
  ...casesOf(
    {},
    {
      async 'the heartbeat keeps a lease, with one token, until its release'(space) {
        const ttl = 4 * space.short
        await inTime(ttl / 3, async () => {
          const [locks, rival] = [await space.locks({ ttl }), await space.client()]
          const name = space.name()
          const lease = await locks.acquire(name)
          const end = performance.now() + 2 * ttl
          while (performance.now() < end) {
            const { holder } = await rival.isRefused(space.claim({ name }))
            assert.equal(holder?.token, lease.token)
            await sleep(ttl / 20)
          }
          lease.assertHeld()
          await lease.release()
          await rival.hold(space.claim({ name }))
        })
      },

      async 'a lease without heartbeat ends at its ttl, before another can hold'(space) {
        // If the event loop is busy, the timer fires late, and only `assertHeld()` reports the end in time.
        await inTime(margin(space.short) / 2, async () => {
          const [locks, rival] = [await space.locks({ ttl: space.short, heartbeat: false }), await space.client()]
          const name = space.name()
          const lease = await locks.acquire(name)
          let aborted = false
          lease.signal.addEventListener('abort', () => {
            aborted = true
          })
          const next = space.claim({ name })
          await until('it is passed on', async () => (await rival.acquire(next)).held)
          const wasAborted = aborted
          assert.throws(() => lease.assertHeld(), { code: 'LEASE_LOST' })
          assert.equal(lease.remaining, 0)
          assert.equal(await lease.release(), 'lost')
          await locks.close() // waits for the withdrawal
          assert.ok(await rival.renew(next), 'the late release freed the next holder')
          assert.ok(wasAborted, 'another holds, and the signal has not aborted')
        })
      },

      async 'notifies a holder whose lease was broken'(space) {
        const [locks, other] = [await space.locks({ ttl: 4 * space.short }), await space.client()]
        await inTime(space.short, async () => {
          const lease = await locks.acquire(space.name())
          const outranks = await other.break(lease.name)
          if (outranks === undefined && lease.remaining === 0) throw new TooSlow('it ended before it was broken')
          assert.ok(outranks !== undefined && outranks > lease.token)
          await until('the signal aborts', () => lease.signal.aborted)
          assert.equal(lease.signal.reason.code, 'LEASE_LOST')
          assert.throws(() => lease.assertHeld(), { code: 'LEASE_LOST' })
          await assert.rejects(lease.extend(), { code: 'LEASE_LOST' })
        })
      },

      async 'the release reports that the lease was broken'(space) {
        const [locks, other] = [await space.locks({ ttl: space.long }), await space.client()]
        const lease = await locks.acquire(space.name())
        await other.break(lease.name)
        assert.equal(await lease.release(), 'lost')
        assert.equal(lease.signal.reason.code, 'LEASE_LOST')
      },

      async 'renews no longer than maxHold'(space) {
        const [locks, rival] = [await space.locks({ ttl: 2 * space.short }), await space.client()]
        const lease = await locks.acquire(space.name(), { maxHold: 3 * space.short })
        await until('the signal aborts', () => lease.signal.aborted)
        if (lease.signal.reason.code === 'MAX_HOLD') assert.throws(() => lease.assertHeld(), { code: 'MAX_HOLD' })
        const next = space.claim({ name: lease.name })
        await until('it is passed on', async () => (await rival.acquire(next)).held)
      },

      async 'extends a lease, for a longer ttl and for a shorter one'(space) {
        const [locks, other] = [await space.locks({ ttl: space.long }), await space.client()]
        const lease = await locks.acquire(space.name())
        assert.ok((await lease.extend(100 * space.long)) > 50 * space.long)
        assert.equal(lease.ttl, 100 * space.long)
        const remains = await lease.extend(2 * space.long)
        const [record] = await other.inspect({ name: lease.name })
        assert.ok(remains <= 2 * space.long && record && record.remaining <= 3 * space.long)
        lease.assertHeld()
        await lease.release()
        await assert.rejects(lease.extend(), { code: 'CLOSED' })
      },

      async 'a lease that was extended to a shorter ttl ends at that ttl'(space) {
        const [locks, rival] = [await space.locks({ ttl: space.long, heartbeat: false }), await space.client()]
        await inTime(space.short / 3, async () => {
          const lease = await locks.acquire(space.name())
          await lease.extend(space.short)
          const next = space.claim({ name: lease.name })
          await until('it is passed on', async () => (await rival.acquire(next)).held)
          assert.throws(() => lease.assertHeld(), { code: 'LEASE_LOST' })
        })
      },

      async 'a lease is released once, without an abort, and is then no longer held'(space) {
        const locks = await space.locks({ ttl: space.long })
        const lease = await locks.acquire(space.name())
        const { signal } = lease
        await Promise.all([lease.release(), lease.release()])
        await lease[Symbol.asyncDispose]()
        assert.throws(() => lease.assertHeld(), { code: 'CLOSED' })
        assert.equal(lease.remaining, 0)
        assert.equal(signal.aborted, false)
      },

      async 'each lease has a higher token than the one before'(space) {
        const [one, two] = [await space.locks(), await space.locks()]
        const name = space.name()
        let last = 0n
        for (const locks of [one, two, one, two]) {
          await using lease = await locks.acquire(name)
          assert.ok(lease.token > last)
          last = lease.token
        }
      },

      async 'shows the holder, and breaks its lease, through another client'(space) {
        const [one, two] = [await space.locks({ owner: 'one', note: 'why' }), await space.locks()]
        const lease = await one.acquire(space.name())
        const {
          holders: [holder],
        } = await two.inspect(lease.name)
        assert.deepEqual([holder?.owner, holder?.note, holder?.token], ['one', 'why', lease.token])
        for await (const record of two.list(lease.name)) assert.equal(record.token, lease.token)
        assert.ok(((await two.break(lease.name)) ?? 0n) > lease.token)
        assert.equal((await two.inspect(lease.name)).holders[0], undefined)
      },
    },
    {
      'notifies a holder whose lease was broken': ['break'],
      'the release reports that the lease was broken': ['break'],
      'shows the holder, and breaks its lease, through another client': ['break'],
    },
  ),
  ...casesOf(
    { alone: true },
    {
      async 'reports the loss right after the event loop was blocked for 2 x ttl'(space) {
        for (const heartbeat of [true, false]) {
          const locks = await space.locks({ ttl: space.short, heartbeat })
          await inTime(Number.POSITIVE_INFINITY, async () => {
            const [first, second, third] = await Promise.all([1, 2, 3].map(() => locks.acquire(space.name())))
            assert.ok(first && second && third)
            block(2 * space.short)
            assert.throws(() => first.assertHeld(), { code: 'LEASE_LOST' })
            assert.equal(second.remaining, 0)
            assert.equal(third.signal.aborted, true)
          })
        }
      },

      async 'keeps a lease whose renewals are delayed but in time'(space) {
        const ttl = 5 * space.short
        const locks = await space.locks({ ttl })
        const lease = await locks.acquire(space.name())
        for (let turn = 0; turn < 2; turn += 1) {
          block(ttl / 2)
          await until('it is renewed', () => lease.remaining > ttl / 2)
        }
        await lease.release()
      },

      async 'counts a lease from before its request was sent'(space) {
        const wire = new Wire((await space.client()).store)
        wire.onReply = () => sleep(space.short / 3)
        const locks = space.manage(createLocks(wire, { ttl: 2 * space.short, heartbeat: false }))
        const lease = await locks.acquire(space.name())
        const now = performance.now()
        assert.ok(lease.remaining <= wire.lastGood + lease.ttl - margin(lease.ttl) - now + 1)
      },
    },
  ),
]
