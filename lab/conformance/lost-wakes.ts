import assert from 'node:assert/strict'
import { createLocks } from '../../src/index.ts'
import type { Store } from '../../src/store.ts'
import { type Case, casesOf } from './case.ts'
import { inTime, sleep, TooSlow, until } from './timing.ts'
import { Wire } from './wire.ts'

/** Waiters that no release wakes any more. */
export const lostWakeCases: Case[] = [
  ...casesOf(
    { needs: ['queue', 'apart'] },
    {
      async 'R15: a waiter whose position was deleted is woken, or asks by itself, and waits again'(space) {
        const [one, two] = await space.pair()
        const holder = space.claim()
        await one.hold(holder)
        const waiter = space.claim({ name: holder.name, queue: true })
        await one.isRefused(waiter)
        const watch = await one.watch(waiter)
        const { kept, retryAfter } = await one.isRefused(waiter) // a store may keep positions only once it is subscribed
        const asksAt = kept ? Number.POSITIVE_INFINITY : performance.now() + retryAfter
        const { wakes } = watch
        assert.equal(await two.release(waiter), 'released')
        await until('it asks', () => watch.wakes > wakes || performance.now() >= asksAt)
        await one.isRefused(waiter)
        const records = await two.inspect({ name: holder.name })
        assert.deepEqual(
          records.map(({ state, owner }) => [state, owner]),
          [
            ['held', holder.owner],
            ['waiting', waiter.owner],
          ],
        )
        watch.stop()
      },
    },
  ),
  ...casesOf(
    { needs: ['stop', 'queue', 'watch'], alone: true },
    {
      async 'R9: a waiter holds soon after the server was stopped and started again'(space) {
        // A server that starts for longer than the ttl of the waiter was dead for longer, and the wait ends.
        await inTime(Number.POSITIVE_INFINITY, async nth => {
          const [client, other] = await space.pair()
          const { wire, isArmed } = watched(other.store)
          const locks = space.manage(createLocks(wire, { ttl: 20 * space.short }))
          const holder = space.claim({ ttl: 4 * nth * space.short })
          const { token } = await client.hold(holder)
          let isOver = false
          const waiting = locks.acquire(holder.name)
          waiting
            .catch(() => {}) // see below
            .finally(() => {
              isOver = true
            })
          await until('it waits', () => isOver || isArmed())
          await sleep(100) // no request of it is under way, whose failure would make it ask again
          if (isOver) throw new TooSlow('the lease ended before the server was stopped')
          const cure = await space.stop()
          await cure()
          // The server may know the holder, whose lease then lasts its ttl, or have lost everything.
          await until('the waiter holds', () => isOver)
          const lease = await waiting
          assert.ok(lease.token > token, `${lease.token} after ${token}`)
          await lease.release()
        })
      },
    },
  ),
]

/** A network to a store, and whether a watch is armed and no acquire is under way. */
function watched(store: Store): { wire: Wire; isArmed: () => boolean } {
  const wire = new Wire(store)
  let armed = false
  const { watch } = wire
  if (watch)
    wire.watch = async (...parameters) => {
      await watch(...parameters)
      armed = true
    }
  return { wire, isArmed: () => armed && wire.sent('acquire') === wire.answered('acquire') }
}
