import assert from 'node:assert/strict'
import { type Busy, type Claim, LONGEST_ROUND_TRIP, TURN } from '../../src/store.ts'
import { type Case, casesOf } from './case.ts'
import type { Client } from './client.ts'
import type { Space } from './space.ts'
import { inTime, STATE_LIMIT, sleep, TooSlow, until } from './timing.ts'

/** Milliseconds after its last request for which a dead waiter may block others that cannot pass it. */
export const LONGEST_POSITION: number = 5_000

/** The queue, in a store that serves waiters first come, first served. */
export const queueCases: Case[] = [
  ...casesOf(
    { needs: ['queue'] },
    {
      async 'R8: reports the number of waiters ahead of a claim'(space) {
        const { answers } = await queueOf(space, 3)
        assert.deepEqual(
          answers.map(answer => answer.ahead),
          [0, 1, 2],
        )
      },

      async 'R1: a waiter that asks again keeps its position'(space) {
        const { clients, waiters } = await queueOf(space, 3)
        const [first, second] = waiters as [Claim, Claim, Claim]
        assert.equal((await clients[1].isRefused(first)).ahead, 0)
        assert.equal((await clients[0].isRefused(second)).ahead, 1)
      },

      async 'R8: skips a dead waiter after its grace period'(space) {
        await inTime(space.short, async () => {
          const { clients, holder, waiters } = await queueOf(space, 2)
          const [, alive] = waiters as [Claim, Claim]
          await clients[0].release(holder)
          await followUntilHeld(clients[1], alive, performance.now() + TURN + space.latest)
        })
      },

      async 'R8: skips dead waiters when a lease has expired'(space) {
        await inTime(space.short / 4, async nth => {
          const { clients, waiters, ends } = await queueOf(space, 4, nth * space.short)
          await followUntilHeld(clients[1], waiters[3] as Claim, ends + LONGEST_POSITION + space.latest)
        })
      },

      async 'R8: a process that died with many waiters does not block the others'(space) {
        await inTime(space.short, async () => {
          const [dying, other] = await space.pair()
          const holder = space.claim()
          const { name } = holder
          await other.hold(holder)
          const dead = Array.from({ length: 60 }, () => space.claim({ name, queue: true }))
          await Promise.all(dead.map(claim => dying.isRefused(claim)))
          const alive = space.claim({ name, queue: true })
          assert.equal((await other.isRefused(alive)).ahead, dead.length)
          await other.release(holder)
          await followUntilHeld(other, alive, performance.now() + LONGEST_POSITION + space.latest)
        })
      },

      async 'R8: skips a dead waiter after its grace period, whatever its round trip'(space) {
        await inTime(space.short, async () => {
          const { clients, holder, waiters } = await queueOf(space, 2, space.long, [20 * LONGEST_ROUND_TRIP])
          const [, alive] = waiters as [Claim, Claim]
          await clients[0].release(holder)
          const latest = performance.now() + TURN + LONGEST_ROUND_TRIP + space.latest
          await followUntilHeld(clients[1], alive, latest)
        })
      },

      async 'R8: drops the position of a waiter that stops asking'(space) {
        const client = await space.client()
        const holder = space.claim()
        await client.hold(holder)
        await client.isRefused(space.claim({ name: holder.name, queue: true, ttl: space.short }))
        assert.equal((await client.inspect({ name: holder.name })).length, 2)
        await until('the position lapses', async () => (await client.inspect({ name: holder.name })).length === 1)
      },

      async 'R8: keeps the position of a waiter that asks in time, or is kept'(space) {
        const client = await space.client()
        await inTime(space.short, async () => {
          const holder = space.claim()
          await client.hold(holder)
          const end = performance.now() + 6 * space.short
          /** By position: when its waiter was told to ask. Its request may take too long. */
          const due: number[] = []
          const follow = async (position: number): Promise<void> => {
            if (performance.now() > end - 2 * space.short) throw new TooSlow('a waiter came too late to ask twice')
            const waiter = space.claim({ name: holder.name, queue: true, ttl: space.short })
            const watch = await client.watch(waiter)
            due[position] = performance.now()
            while (performance.now() < end) {
              const { ahead, retryAfter, kept } = await client.isRefused(waiter)
              if (ahead !== position && performance.now() - Math.min(...due) > space.short / 2)
                throw new TooSlow('a waiter was too late to keep its position')
              assert.equal(ahead, position)
              const pause = kept ? 3 * space.short : retryAfter
              due[position] = performance.now() + pause
              await sleep(pause)
            }
            watch.stop()
          }
          const first = follow(0)
          // If positions are not kept, the first lapses before it asks again, and the second does not lapse by then.
          await sleep(2 * space.short)
          await Promise.all([first, follow(1)])
        })
      },

      async 'R8: removes a served waiter from the queue'(space) {
        const { clients, holder, waiters } = await queueOf(space, 1)
        await clients[1].release(holder)
        await clients[0].hold(waiters[0] as Claim)
        const records = await clients[1].inspect({ name: holder.name })
        assert.deepEqual(
          records.map(({ state }) => state),
          ['held'],
        )
      },

      async 'R8: moves the others up when a waiter leaves'(space) {
        const { clients, waiters } = await queueOf(space, 3)
        const [first, second, third] = waiters as [Claim, Claim, Claim]
        assert.equal(await clients[1].release(second), 'released')
        assert.equal((await clients[0].isRefused(third)).ahead, 1)
        assert.equal(await clients[1].release(first), 'released')
        assert.equal((await clients[0].isRefused(third)).ahead, 0)
        assert.equal(await clients[1].release(second), 'gone')
      },

      async 'R8: serves the next waiter when the first withdraws'(space) {
        const { clients, holder, waiters } = await queueOf(space, 2)
        const [first, second] = waiters as [Claim, Claim]
        await clients[0].release(holder)
        await clients[0].release(first)
        await clients[1].hold(second)
      },

      async 'R8: has a separate queue for each name'(space) {
        const { clients, holder } = await queueOf(space, 3)
        await clients[1].hold(space.claim({ name: `${holder.name}/b`, queue: true }))
      },

      async 'R8: shows the holder, then the waiters in order'(space) {
        const { clients, holder, waiters } = await queueOf(space, 3)
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
  // A claim that comes during the grace period of another is seen only within that period.
  ...casesOf(
    { needs: ['queue'], alone: true },
    {
      async 'R8: serves waiters in order of arrival, whichever asks first'(space) {
        await inTime(TURN / 2, async () => {
          const { clients, holder, waiters } = await queueOf(space, 5)
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

      async 'R8: a claim that does not queue never overtakes'(space) {
        await inTime(TURN / 2, async () => {
          const { clients, holder, waiters } = await queueOf(space, 1)
          const [waiter] = waiters as [Claim]
          const released = performance.now()
          await clients[0].release(holder)
          const answer = await clients[1].acquire(space.claim({ name: holder.name }))
          inTurn(released)
          assert.equal(answer.held, false, 'it was served before the waiter')
          await clients[0].hold(waiter)
        })
      },

      async 'R8: a later claim never overtakes'(space) {
        await inTime(TURN / 2, async () => {
          const { clients, holder, waiters } = await queueOf(space, 1)
          const released = performance.now()
          await clients[0].release(holder)
          const late = await clients[1].acquire(space.claim({ name: holder.name, queue: true }))
          inTurn(released)
          assert.equal(late.held, false)
          assert.equal(late.held === false && late.ahead, 1)
          await clients[0].hold(waiters[0] as Claim)
        })
      },

      async 'R8: a waiter with a round trip of 600 ms is served in turn with near ones'(space) {
        await inTime(TURN, async () => {
          const { clients, holder, waiters } = await queueOf(space, 3, space.long, [600])
          const [far, ...near] = waiters as [Claim, Claim, Claim]
          const released = performance.now()
          await clients[0].release(holder)
          await sleep(4 * TURN)
          const answers = await Promise.all(near.map(claim => clients[1].acquire(claim)))
          inTurn(released, TURN + 600)
          assert.deepEqual(
            answers.map(({ held }) => held),
            [false, false],
          )
          await clients[0].hold(far)
        })
      },

      async 'R10: a break keeps the queue'(space) {
        await inTime(TURN / 2, async () => {
          const { clients, holder, waiters } = await queueOf(space, 2)
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

export interface Line {
  readonly clients: readonly [Client, Client]
  readonly holder: Claim
  readonly waiters: readonly Claim[]
  readonly answers: readonly Busy[]
  /** When the lease of the holder has ended, by `performance.now()`. */
  readonly ends: number
}

/**
 * A name that is held and has `count` waiters, alternately of two clients. The first is of `clients[0]`. `roundTrips`: of
 * the waiters, in order. The store measures those that are missing.
 */
export async function queueOf(
  space: Space,
  count: number,
  ttl: number = space.long,
  roundTrips: readonly number[] = [],
): Promise<Line> {
  const clients = await space.pair()
  const holder = space.claim({ ttl })
  const { name } = holder
  const grant = await clients[1].hold(holder)
  const ends = performance.now() + grant.ttl
  const waiters: Claim[] = []
  const answers: Busy[] = []
  for (let index = 0; index < count; index += 1) {
    const waiter = space.claim({ name, queue: true, roundTrip: roundTrips[index] })
    waiters.push(waiter)
    answers.push(await clients[index % 2 ? 1 : 0].isRefused(waiter))
  }
  return { clients, holder, waiters, answers, ends }
}

/** An answer after the grace period of the first waiter proves nothing about the order. */
function inTurn(since: number, turn: number = TURN): void {
  if (performance.now() - since >= turn) throw new TooSlow('the turn was over before all were answered')
}

/**
 * Asks as told, like the core, until it holds. Rejects if a request that was sent after `end` is refused. A late answer
 * proves nothing. If answers are slow, the store may not know yet that the name is free, so it throws `TooSlow`.
 */
export async function followUntilHeld(
  client: Client,
  claim: Claim,
  end: number = performance.now() + STATE_LIMIT,
): Promise<void> {
  for (let slowest = 0; ; ) {
    const sent = performance.now()
    const answer = await client.acquire(claim)
    if (answer.held) return
    slowest = Math.max(slowest, performance.now() - sent)
    if (sent > end) {
      const message = `${claim.owner} does not hold ${claim.name} ${Math.round(sent - end)} ms after it should`
      throw slowest > TURN ? new TooSlow(message) : new Error(message)
    }
    await sleep(Math.min(answer.retryAfter, 50))
  }
}
