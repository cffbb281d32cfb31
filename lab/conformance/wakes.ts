import assert from 'node:assert/strict'
import { type Claim, TURN } from '../../src/store.ts'
import { type Case, casesOf } from './case.ts'
import type { Watch } from './client.ts'
import { followUntilHeld, queueOf } from './queue.ts'
import { inTime, sleep, until } from './timing.ts'

/** Notifications of waiters. They grant nothing. */
export const wakeCases: Case[] = casesOf(
  { needs: ['queue', 'watch'] },
  {
    async 'R9: a release wakes the first waiter'(space) {
      const { clients, holder, waiters } = await queueOf(space, 2)
      const watch = await clients[0].watch(waiters[0] as Claim)
      await clients[1].release(holder)
      await until('the first waiter is woken', () => watch.wakes > 0)
      watch.stop()
    },

    async 'R9: a release by the same process wakes the first waiter'(space) {
      const { clients, holder, waiters } = await queueOf(space, 1)
      const watch = await clients[0].watch(waiters[0] as Claim)
      await clients[0].release(holder)
      await until('the first waiter is woken', () => watch.wakes > 0)
      watch.stop()
    },

    async 'R9: a break wakes the first waiter'(space) {
      const { clients, holder, waiters } = await queueOf(space, 1)
      const watch = await clients[0].watch(waiters[0] as Claim)
      await clients[1].break(holder.name)
      await until('the first waiter is woken', () => watch.wakes > 0)
      watch.stop()
    },

    async 'R9: wakes the next waiter when the first withdraws while the name is free'(space) {
      const { clients, holder, waiters } = await queueOf(space, 2)
      const [first, second] = waiters as [Claim, Claim]
      const watches = await Promise.all([clients[0].watch(first), clients[1].watch(second)])
      await clients[0].release(holder)
      await until('the first waiter is woken', () => watches[0].wakes > 0)
      await clients[0].release(first)
      await until('the next waiter is woken', () => watches[1].wakes > 0)
      for (const watch of watches) watch.stop()
    },

    async 'R9: wakes the next waiter in time if the first does not ask'(space) {
      const { clients, holder, waiters } = await queueOf(space, 2)
      const [first, second] = waiters as [Claim, Claim]
      const watches = await Promise.all([clients[0].watch(first), clients[1].watch(second)])
      await sleep(TURN) // a first waiter that asked just now counts as alive
      await clients[1].release(holder)
      // At once with a delay for the end of the grace period, or at its end.
      await until('the next waiter is woken', () => watches[1].wakes + watches[1].delays.length > 0)
      await followUntilHeld(clients[1], second)
      for (const watch of watches) watch.stop()
    },

    async 'R9: wakes the next waiter of the same process in time if the first does not ask'(space) {
      const [client, other] = await space.pair()
      const holder = space.claim()
      await other.hold(holder)
      const waiters = [holder, holder].map(({ name }) => space.claim({ name, queue: true }))
      for (const waiter of waiters) await client.isRefused(waiter)
      const [first, second] = (await Promise.all(waiters.map(waiter => client.watch(waiter)))) as [Watch, Watch]
      await sleep(TURN)
      await other.release(holder)
      await until('the next waiter is woken', () => second.wakes + second.delays.length > 0)
      for (const watch of [first, second]) watch.stop()
    },

    async 'R9: a message grants nothing: a waiter holds once its own acquire was answered'(space) {
      for (const end of ['release', 'own release', 'break']) {
        const { clients, holder, waiters } = await queueOf(space, 1)
        const [waiter] = waiters as [Claim]
        const watch = await clients[0].watch(waiter)
        await clients[0].isRefused(waiter) // it asked just now
        if (end === 'break') await clients[1].break(holder.name)
        else await clients[end === 'release' ? 1 : 0].release(holder)
        await until('the waiter is woken', () => watch.wakes > 0)
        const records = await clients[1].inspect({ name: holder.name })
        assert.deepEqual(
          records.map(({ state, owner }) => [state, owner]),
          [['waiting', waiter.owner]],
          `after the ${end}`,
        )
        await clients[0].hold(waiter)
        watch.stop()
      }
    },

    async 'R15: a waiter whose grant was not accepted keeps its next position, and is woken'(space) {
      const clients = await space.pair()
      await inTime(space.short, async () => {
        const holder = space.claim({ ttl: space.long })
        const { name } = holder
        await clients[1].hold(holder)
        const waiter = space.claim({ name, queue: true, ttl: 2_000 })
        await clients[0].isRefused(waiter)
        const watch = await clients[0].watch(waiter)
        await clients[1].release(holder)
        await clients[0].hold(waiter)
        await clients[1].break(name)
        const next = space.claim({ name, ttl: space.long })
        await clients[1].hold(next)
        const since = performance.now()
        let answer = await clients[0].isRefused(waiter)
        while (!answer.kept && performance.now() < since + 1.5 * waiter.ttl) {
          await sleep(answer.retryAfter)
          answer = await clients[0].isRefused(waiter)
        }
        if (answer.kept) await sleep(1.5 * waiter.ttl)
        const { wakes } = watch
        await clients[1].release(next)
        await until('the waiter is woken', () => watch.wakes > wakes, 2 * space.latest)
        watch.stop()
      })
    },

    async 'R8: skips a waiter that was woken and does not ask, after its grace period'(space) {
      await inTime(space.short, async () => {
        const { clients, holder, waiters } = await queueOf(space, 2)
        const [first, second] = waiters as [Claim, Claim]
        const watch = await clients[0].watch(first)
        await clients[1].release(holder)
        await followUntilHeld(clients[1], second, performance.now() + TURN + space.latest)
        watch.stop()
      })
    },

    async 'R9: wakes no waiter whose watch was stopped'(space) {
      const { clients, holder, waiters } = await queueOf(space, 3)
      const [first, second, third] = waiters as [Claim, Claim, Claim]
      const watches = await Promise.all([clients[0].watch(first), clients[1].watch(second), clients[0].watch(third)])
      watches[0].stop()
      await clients[1].release(holder)
      await clients[0].hold(first)
      await clients[0].release(first)
      await until('the next waiter is woken', () => watches[1].wakes > 0)
      await clients[1].release(second)
      await until('the last waiter is woken', () => watches[2].wakes > 0)
      assert.equal(watches[0].wakes, 0)
      for (const watch of watches) watch.stop()
    },
  },
)
