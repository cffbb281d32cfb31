import assert from 'node:assert/strict'
import type { Busy, Claim } from '../contract/store.ts'
import { TURN } from '../contract/time.ts'
import { type Case, casesOf } from './case.ts'
import type { Client } from './client.ts'
import type { Space } from './space.ts'
import { inTime, sleep, TooSlow, until } from './timing.ts'

/** Waiting, in a store that serves waiters in the order in which they came. */
export const lineCases: Case[] = [
  ...casesOf(
    { needs: ['line'] },
    {
      async 'R8: says how many wait before a claim'(space) {
        const { answers } = await lineOf(space, 3)
        assert.deepEqual(
          answers.map(answer => answer.ahead),
          [0, 1, 2],
        )
      },

      async 'R1: keeps the place of a waiter that asks again'(space) {
        const { clients, waiters } = await lineOf(space, 3)
        const [first, second] = waiters as [Claim, Claim, Claim]
        assert.equal((await clients[1].isRefused(first)).ahead, 0)
        assert.equal((await clients[0].isRefused(second)).ahead, 1)
      },

      async 'R8: passes over a waiter that is dead, after its turn'(space) {
        const { clients, holder, waiters } = await lineOf(space, 2)
        const [, alive] = waiters as [Claim, Claim]
        await clients[0].release(holder)
        await followUntilHeld(clients[1], alive)
      },

      async 'R8: passes over waiters that are dead when a lease ran out'(space) {
        const { clients, waiters } = await inTime(space.short / 4, () => lineOf(space, 4, space.short))
        await followUntilHeld(clients[1], waiters[3] as Claim)
      },

      async 'R8: forgets the place of a waiter that asks no more'(space) {
        const client = await space.client()
        const holder = space.claim()
        await client.hold(holder)
        await client.isRefused(space.claim({ name: holder.name, queue: true, ttl: space.short }))
        assert.equal((await client.inspect({ name: holder.name })).length, 2)
        await until('the place lapses', async () => (await client.inspect({ name: holder.name })).length === 1)
      },

      async 'R8: keeps the place of a waiter that asks when it was told to'(space) {
        const client = await space.client()
        await inTime(space.short, async () => {
          const holder = space.claim()
          await client.hold(holder)
          const end = performance.now() + 6 * space.short
          const follow = async (place: number): Promise<void> => {
            const waiter = space.claim({ name: holder.name, queue: true, ttl: space.short })
            while (performance.now() < end) {
              const { ahead, retryAfter } = await client.isRefused(waiter)
              assert.equal(ahead, place)
              await sleep(retryAfter)
            }
          }
          const first = follow(0)
          await sleep(space.short)
          await Promise.all([first, follow(1)])
        })
      },

      async 'R8: takes a waiter that is served out of the line'(space) {
        const { clients, holder, waiters } = await lineOf(space, 1)
        await clients[1].release(holder)
        await clients[0].hold(waiters[0] as Claim)
        const records = await clients[1].inspect({ name: holder.name })
        assert.deepEqual(
          records.map(({ state }) => state),
          ['held'],
        )
      },

      async 'R8: closes the gap that a waiter leaves'(space) {
        const { clients, waiters } = await lineOf(space, 3)
        const [first, second, third] = waiters as [Claim, Claim, Claim]
        assert.equal(await clients[1].release(second), 'released')
        assert.equal((await clients[0].isRefused(third)).ahead, 1)
        assert.equal(await clients[1].release(first), 'released')
        assert.equal((await clients[0].isRefused(third)).ahead, 0)
        assert.equal(await clients[1].release(second), 'gone')
      },

      async 'R8: passes the turn on when the head withdraws'(space) {
        const { clients, holder, waiters } = await lineOf(space, 2)
        const [first, second] = waiters as [Claim, Claim]
        await clients[0].release(holder)
        await clients[0].release(first)
        await clients[1].hold(second)
      },

      async 'R8: has a line for each name'(space) {
        const { clients, holder } = await lineOf(space, 3)
        await clients[1].hold(space.claim({ name: `${holder.name}/b`, queue: true }))
      },

      async 'R8: shows the holder, then the waiters in order'(space) {
        const { clients, holder, waiters } = await lineOf(space, 3)
        const records = await clients[1].inspect({ name: holder.name })
        assert.deepEqual(
          records.map(({ state, owner, position, token }) => [state, owner, position, typeof token]),
          [
            ['held', holder.owner, undefined, 'bigint'],
            ...waiters.map(({ owner }, position) => ['waiting', owner, position, 'undefined']),
          ],
        )
        assert.ok(records.every(({ remaining }) => remaining > 0))
      },
    },
  ),
  // Who comes while it is another's turn is seen only within that turn.
  ...casesOf(
    { needs: ['line'], alone: true },
    {
      async 'R8: serves waiters in the order in which they came, whoever asks first'(space) {
        await inTime(TURN / 2, async () => {
          const { clients, holder, waiters } = await lineOf(space, 5)
          let last: Claim = holder
          for (const [index, waiter] of waiters.entries()) {
            const released = performance.now()
            await clients[0].release(last)
            const asking = waiters.slice(index).reverse()
            const answers = await Promise.all(asking.map((claim, k) => clients[k % 2 ? 1 : 0].acquire(claim)))
            inTurn(released)
            const served = asking.filter((_, k) => answers[k]?.held)
            assert.deepEqual(served, [waiter], `after ${index} were served`)
            last = waiter
          }
        })
      },

      async 'R8: lets nobody overtake who does not queue'(space) {
        await inTime(TURN / 2, async () => {
          const { clients, holder, waiters } = await lineOf(space, 1)
          const [waiter] = waiters as [Claim]
          const released = performance.now()
          await clients[0].release(holder)
          const answer = await clients[1].acquire(space.claim({ name: holder.name }))
          inTurn(released)
          assert.equal(answer.held, false, 'it was served before the waiter')
          await clients[0].hold(waiter)
        })
      },

      async 'R8: lets nobody overtake who comes later'(space) {
        await inTime(TURN / 2, async () => {
          const { clients, holder, waiters } = await lineOf(space, 1)
          const released = performance.now()
          await clients[0].release(holder)
          const late = await clients[1].acquire(space.claim({ name: holder.name, queue: true }))
          inTurn(released)
          assert.equal(late.held, false)
          assert.equal(late.held === false && late.ahead, 1)
          await clients[0].hold(waiters[0] as Claim)
        })
      },

      async 'R10: keeps the line over a break'(space) {
        await inTime(TURN / 2, async () => {
          const { clients, holder, waiters } = await lineOf(space, 2)
          const [first, second] = waiters as [Claim, Claim]
          const [held] = await clients[0].inspect({ name: holder.name })
          const broken = performance.now()
          const token = (await clients[0].break(holder.name)) ?? assert.fail('nobody held')
          const answer = await clients[1].acquire(second)
          inTurn(broken)
          assert.equal(answer.held, false)
          assert.ok((await clients[0].hold(first)).token > token)
          assert.ok(token > (held?.token ?? token), `${token} after ${held?.token}`) // alone, nobody else raised it
        })
      },
    },
  ),
]

/** Wakes. */
export const watchCases: Case[] = casesOf(
  { needs: ['line', 'watch'] },
  {
    async 'R9: wakes the head of the line at a release'(space) {
      const { clients, holder, waiters } = await lineOf(space, 2)
      const watch = await clients[0].watch(waiters[0] as Claim)
      await clients[1].release(holder)
      await until('the head is woken', () => watch.wakes > 0)
      watch.stop()
    },

    async 'R9: wakes the head of the line at a release by its own process'(space) {
      const { clients, holder, waiters } = await lineOf(space, 1)
      const watch = await clients[0].watch(waiters[0] as Claim)
      await clients[0].release(holder)
      await until('the head is woken', () => watch.wakes > 0)
      watch.stop()
    },

    async 'R9: wakes the head of the line at a break'(space) {
      const { clients, holder, waiters } = await lineOf(space, 1)
      const watch = await clients[0].watch(waiters[0] as Claim)
      await clients[1].break(holder.name)
      await until('the head is woken', () => watch.wakes > 0)
      watch.stop()
    },

    async 'R9: wakes the next when the head withdraws while the name is free'(space) {
      const { clients, holder, waiters } = await lineOf(space, 2)
      const [first, second] = waiters as [Claim, Claim]
      const watches = await Promise.all([clients[0].watch(first), clients[1].watch(second)])
      await clients[0].release(holder)
      await until('the head is woken', () => watches[0].wakes > 0)
      await clients[0].release(first)
      await until('the next is woken', () => watches[1].wakes > 0)
      for (const watch of watches) watch.stop()
    },

    async 'R9: lets the next know in time, should the head not take its turn'(space) {
      const { clients, holder, waiters } = await lineOf(space, 2)
      const [first, second] = waiters as [Claim, Claim]
      const watches = await Promise.all([clients[0].watch(first), clients[1].watch(second)])
      await sleep(TURN) // a head that asked just now may be trusted to be there
      await clients[1].release(holder)
      // At once, and to come when the turn of the head is over; or when it is.
      await until('the next is told', () => watches[1].wakes + watches[1].delays.length > 0)
      await followUntilHeld(clients[1], second)
      for (const watch of watches) watch.stop()
    },

    async 'R9: wakes nobody whose watch was stopped'(space) {
      const { clients, holder, waiters } = await lineOf(space, 3)
      const [first, second, third] = waiters as [Claim, Claim, Claim]
      const watches = await Promise.all([clients[0].watch(first), clients[1].watch(second), clients[0].watch(third)])
      watches[0].stop()
      await clients[1].release(holder)
      await clients[0].hold(first)
      await clients[0].release(first)
      await until('the next is woken', () => watches[1].wakes > 0)
      await clients[1].release(second)
      await until('the last is woken', () => watches[2].wakes > 0)
      assert.equal(watches[0].wakes, 0)
      for (const watch of watches) watch.stop()
    },
  },
)

interface Line {
  readonly clients: readonly [Client, Client]
  readonly holder: Claim
  readonly waiters: readonly Claim[]
  readonly answers: readonly Busy[]
}

/** A name that is held, and `count` waiters, by turns of two clients: the first is of `clients[0]`. */
async function lineOf(space: Space, count: number, ttl: number = space.long): Promise<Line> {
  const clients = await space.pair()
  const holder = space.claim({ ttl })
  const { name } = holder
  await clients[1].hold(holder)
  const waiters: Claim[] = []
  const answers: Busy[] = []
  for (let index = 0; index < count; index += 1) {
    const waiter = space.claim({ name, queue: true })
    waiters.push(waiter)
    answers.push(await clients[index % 2 ? 1 : 0].isRefused(waiter))
  }
  return { clients, holder, waiters, answers }
}

/** What is answered after the head's turn is over says nothing of the order. */
function inTurn(since: number): void {
  if (performance.now() - since >= TURN) throw new TooSlow('the turn was over before all were answered')
}

/** Asks when told to, as the core does, until it holds. */
async function followUntilHeld(client: Client, claim: Claim): Promise<void> {
  await until(`${claim.owner} holds ${claim.name}`, async () => {
    const answer = await client.acquire(claim)
    if (!answer.held) await sleep(Math.min(answer.retryAfter, 50))
    return answer.held
  })
}
