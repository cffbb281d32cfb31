import assert from 'node:assert/strict'
import { type Claim, LARGEST_LIMIT, TURN } from '../../src/store.ts'
import { type Case, casesOf } from './case.ts'
import type { Watch } from './client.ts'
import { followUntilHeld, LONGEST_POSITION, queueOf } from './queue.ts'
import { shared, shown, slotsOf } from './slots.ts'
import type { Space } from './space.ts'
import { inTime, sleep, TooSlow, until } from './timing.ts'

/** Milliseconds. A chain of wakes takes less, and a lost one makes a case fail sooner than `until` does. */
const CHAIN = 10_000

/** The queue of a name that several claims hold. */
export const slotQueueCases: Case[] = [
  ...casesOf(
    { needs: ['slots', 'queue'] },
    {
      async 'R8: readers never overtake a writer that waits, however long'(space) {
        const [one, two] = await space.pair()
        const { permit } = shared(space, LARGEST_LIMIT)
        const readers = [permit(), permit()]
        for (const reader of readers) await one.hold(reader)
        const [writer, late] = [permit({ limit: undefined, queue: true }), permit({ queue: true })]
        await two.isRefused(writer)
        await one.isRefused(late)
        await sleep(3 * TURN)
        assert.equal((await one.isRefused(late)).ahead, 1)
        await one.isRefused(permit())
        for (const reader of readers) await one.release(reader)
        await two.hold(writer)
        await one.isRefused(late)
        await two.release(writer)
        await one.hold(late)
      },

      async 'R8: claims for one slot never overtake a claim for many, however long'(space) {
        const [one, two] = await space.pair()
        const { permit } = shared(space, 3)
        const holders = [permit(), permit()]
        for (const holder of holders) await one.hold(holder)
        const [many, single] = [permit({ units: 3, queue: true }), permit({ queue: true })]
        await two.isRefused(many)
        for (const holder of holders) {
          assert.equal((await one.isRefused(single)).ahead, 1)
          await sleep(3 * TURN)
          await one.isRefused(single)
          await one.isRefused(permit())
          await one.release(holder)
        }
        assert.deepEqual(slotsOf(await two.hold(many)), [0, 1, 2])
      },

      async 'R8: a dead waiter that does not fit blocks the others until its position lapses'(space) {
        await inTime(space.short, async () => {
          const [one, two] = await space.pair()
          const { permit } = shared(space, 2)
          await one.hold(permit({ ttl: 10 * space.long }))
          await one.isRefused(permit({ units: 2, queue: true }))
          const [asked, alive] = [performance.now(), permit({ queue: true })]
          await two.isRefused(alive)
          await followUntilHeld(two, alive, asked + LONGEST_POSITION + space.latest)
        })
      },

      async 'R1: a waiter that asks again keeps its limit and its units'(space) {
        const { clients, holder } = await queueOf(space, 0)
        const waiter = space.claim({ name: holder.name, limit: 3, units: 2, queue: true })
        await clients[0].isRefused(waiter)
        await clients[1].isRefused({ ...waiter, limit: 5, units: 1 })
        const records = async (): Promise<unknown[]> => (await clients[0].inspect({ name: holder.name })).map(shown)
        assert.deepEqual((await records())[1], ['waiting', 3, 2])
        await clients[0].release(holder)
        assert.deepEqual(slotsOf(await clients[1].hold({ ...waiter, limit: 5, units: 1 })), [0, 1])
        assert.deepEqual(await records(), [['held', 3, [0, 1]]])
      },

      async 'R8: a passed waiter costs no grace period at the next release'(space) {
        const { clients, holder, waiters } = await queueOf(space, 2)
        const [, second] = waiters as [Claim, Claim]
        await clients[0].release(holder)
        await followUntilHeld(clients[1], second)
        const third = space.claim({ name: holder.name, queue: true })
        await clients[1].isRefused(third)
        await clients[1].release(second)
        await clients[1].hold(third)
      },

      async 'R11: shows each waiter with its limit and units, in order, after the holders'(space) {
        const [one, two] = await space.pair()
        const { name, permit } = shared(space, 4)
        for (const units of [2, 1]) await one.hold(permit({ units }))
        const waiters = [permit({ units: 3, queue: true }), permit({ limit: undefined, queue: true })]
        for (const waiter of waiters) await one.isRefused(waiter)
        const records = await two.inspect({ name })
        assert.deepEqual(records.map(shown), [
          ['held', 4, [0, 1]],
          ['held', 4, [2]],
          ['waiting', 4, 3],
          ['waiting', 1, 1],
        ])
        assert.deepEqual(
          records.map(({ position }) => position),
          [undefined, undefined, 0, 1],
        )
      },
    },
  ),
  // A claim that comes during the grace period of another is seen only within that period.
  ...casesOf(
    { needs: ['slots', 'queue'], alone: true },
    {
      async 'R8: a passed waiter counts again once it asks'(space) {
        await inTime(TURN / 2, async () => {
          const { clients, holder, waiters } = await queueOf(space, 2)
          const [first, second] = waiters as [Claim, Claim]
          await clients[0].release(holder)
          await followUntilHeld(clients[1], second)
          await clients[0].isRefused(first)
          const released = performance.now()
          await clients[1].release(second)
          const late = await clients[1].acquire(space.claim({ name: holder.name, queue: true }))
          if (performance.now() - released >= TURN) throw new TooSlow('the turn was over before all were answered')
          assert.equal(late.held, false, 'the first waiter was overtaken')
          await clients[0].hold(first)
        })
      },
    },
  ),
  ...casesOf(
    { needs: ['slots', 'queue', 'watch'] },
    {
      async 'R9: the readers that wait for a writer wake each other one after the other'(space) {
        const { clients, writer, readers, watches } = await readersOf(space, 5)
        await clients[1].release(writer)
        for (const [index, reader] of readers.entries()) {
          await until(`reader ${index} is woken`, () => isWoken(watches[index]), CHAIN)
          assert.deepEqual(slotsOf(await clients[index % 2 ? 1 : 0].hold(reader)), [index])
        }
        for (const watch of watches) watch.stop()
      },

      async 'R9: the third waiter is woken in time if the second does not ask after the first'(space) {
        const { clients, writer, readers, watches } = await readersOf(space, 3)
        const [first, , third] = readers as [Claim, Claim, Claim]
        await clients[1].release(writer)
        await until('the first waiter is woken', () => isWoken(watches[0]), CHAIN)
        await clients[0].hold(first)
        await until('the third waiter is woken', () => isWoken(watches[2]), CHAIN)
        await followUntilHeld(clients[0], third)
        for (const watch of watches) watch.stop()
      },

      async 'R9: the withdrawal of a first waiter that does not fit wakes the next'(space) {
        const [one, two] = await space.pair()
        const { permit } = shared(space, 2)
        await one.hold(permit())
        const [many, single] = [permit({ units: 2, queue: true }), permit({ queue: true })]
        await one.isRefused(many)
        await two.isRefused(single)
        const watch = await two.watch(single)
        const { wakes } = watch
        await one.release(many)
        await until('the next waiter is woken', () => watch.wakes > wakes, CHAIN)
        await two.hold(single)
        watch.stop()
      },

      async 'R9: a waiter for two slots is woken when the second is freed'(space) {
        const [one, two] = await space.pair()
        const { permit } = shared(space, 3)
        const holders = [permit(), permit(), permit()] as const
        for (const holder of holders) await one.hold(holder)
        const many = permit({ units: 2, queue: true })
        await two.isRefused(many)
        const watch = await two.watch(many)
        await one.release(holders[0])
        await two.isRefused(many)
        const { wakes } = watch
        await one.release(holders[1])
        await until('the waiter is woken', () => watch.wakes > wakes, CHAIN)
        await two.hold(many)
        watch.stop()
      },
    },
  ),
]

/** Readers that wait for a writer and are watched, alternately of two clients. */
async function readersOf(
  space: Space,
  count: number,
): Promise<{
  readonly clients: Awaited<ReturnType<Space['pair']>>
  readonly writer: Claim
  readonly readers: readonly Claim[]
  readonly watches: readonly Watch[]
}> {
  const clients = await space.pair()
  const { permit } = shared(space, LARGEST_LIMIT)
  const writer = permit({ limit: undefined })
  await clients[1].hold(writer)
  const readers = Array.from({ length: count }, () => permit({ queue: true }))
  const watches: Watch[] = []
  for (const [index, reader] of readers.entries()) {
    const client = clients[index % 2 ? 1 : 0]
    await client.isRefused(reader)
    watches.push(await client.watch(reader))
  }
  return { clients, writer, readers, watches }
}

function isWoken(watch: Watch | undefined): boolean {
  return watch !== undefined && watch.wakes + watch.delays.length > 0
}
