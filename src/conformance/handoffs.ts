import assert from 'node:assert/strict'
import type { Claim } from '../contract/store.ts'
import { TURN } from '../contract/time.ts'
import { type Case, casesOf } from './case.ts'
import { followUntilHeld, inTurn, queueOf } from './queue.ts'
import { EARLY, inTime, until } from './timing.ts'

/** Names that a release grants to the first waiter, if the store does that. */
export const handoffCases: Case[] = [
  ...casesOf(
    { needs: ['queue', 'watch'] },
    {
      async 'R15: a lease of a handoff is renewed and released by its id, and the next waiter follows'(space) {
        const clients = await space.pair()
        const holder = space.claim({ ttl: space.long })
        const { name } = holder
        const first = await clients[1].hold(holder)
        const waiters = [0, 1].map(() => space.claim({ name, queue: true, handoff: true, ttl: space.long }))
        const [one, two] = waiters as [Claim, Claim]
        for (const waiter of waiters) await clients[0].isRefused(waiter)
        const watches = await Promise.all(waiters.map(waiter => clients[0].watch(waiter)))
        await clients[1].release(holder)
        await until('the first waiter is woken', () => (watches[0]?.wakes ?? 0) > 0)
        const { token } = await clients[0].hold(one)
        assert.ok(token > first.token, `${token} after ${first.token}`)
        assert.equal((await clients[0].renew(one))?.token, token)
        const records = await clients[1].inspect({ name })
        assert.deepEqual(
          records.map(({ state, owner }) => [state, owner]),
          [
            ['held', one.owner],
            ['waiting', two.owner],
          ],
        )
        assert.equal(await clients[0].release(one), 'released')
        await until('the next waiter is woken', () => (watches[1]?.wakes ?? 0) > 0)
        assert.ok((await clients[0].hold(two)).token > token)
        for (const watch of watches) watch.stop()
      },
    },
  ),
  // A waiter must have asked just now.
  ...casesOf(
    { needs: ['queue', 'watch'], alone: true },
    {
      async 'R15: a lease of a handoff lasts its ttl from when the claim asked, unless it is renewed'(space) {
        await inTime(TURN / 2, async () => {
          const clients = await space.pair()
          const holder = space.claim({ ttl: space.long })
          const { name } = holder
          await clients[1].hold(holder)
          const waiter = space.claim({ name, queue: true, handoff: true, ttl: space.short })
          let asked = performance.now()
          await clients[0].isRefused(waiter)
          const watch = await clients[0].watch(waiter)
          await clients[1].release(holder)
          inTurn(asked) // a waiter that asked longer ago is only woken, or has left the queue
          await until('the waiter is woken', () => watch.wakes > 0)
          const again = performance.now()
          const { ttl, handoff } = await clients[0].hold(waiter)
          if (!handoff) asked = again
          await until('the lease has ended', async () => (await clients[1].acquire(space.claim({ name }))).held)
          const lasted = performance.now() - asked
          assert.ok(lasted >= ttl - EARLY, `it lasted ${lasted} ms of ${ttl} that were granted`)
          watch.stop()
        })
      },

      async 'R15: a waiter without handoff that does not ask is skipped after its grace period'(space) {
        await inTime(TURN / 2, async () => {
          const { clients, holder, waiters } = await queueOf(space, 1)
          const [first] = waiters as [Claim]
          const second = space.claim({ name: holder.name, queue: true })
          await clients[1].isRefused(second)
          const asked = performance.now()
          await clients[0].isRefused(first)
          const watch = await clients[0].watch(first)
          await clients[1].release(holder)
          inTurn(asked) // a waiter that asked longer ago is only woken
          await followUntilHeld(clients[1], second, performance.now() + TURN + space.latest)
          watch.stop()
        })
      },
    },
  ),
]
