import assert from 'node:assert/strict'
import type { Locks, Permit } from '../../src/index.ts'
import { LONGEST_REQUEST, TURN } from '../../src/store.ts'
import { type Case, casesOf } from './case.ts'
import type { Space } from './space.ts'
import { inTime, sleep, TooSlow, until } from './timing.ts'

/** Permits, readers and writers over this store, and several names at once. */
export const sharingCases: Case[] = [
  ...casesOf(
    {},
    {
      async 'grants at most as many permits as the limit, each with a slot of its own'(space) {
        const { one, two } = await pairOf(space)
        const name = space.name()
        const inside = new Set<number>()
        const last = new Map<number, bigint>()
        const work = async (locks: Locks): Promise<void> => {
          await locks.semaphore(name, { limit: 2 }).using(async ({ slot, token }) => {
            assert.ok(slot < 2 && !inside.has(slot), `slot ${slot}, beside ${[...inside]}`)
            assert.ok(token > (last.get(slot) ?? 0n), `token ${token} after ${last.get(slot)}`)
            last.set(slot, token)
            inside.add(slot)
            await sleep(20)
            inside.delete(slot)
          })
        }
        await Promise.all(Array.from({ length: 6 }, (_, index) => work(index % 2 ? one : two)))
        await isFree(space, name)
      },

      async 'a limit of 1 is the lease of the name'(space) {
        const { one, two } = await pairOf(space)
        const name = space.name()
        const permit = await one.semaphore(name, { limit: 1 }).acquire()
        assert.equal(await two.tryAcquire(name), undefined)
        await permit.release()
        const lease = await two.acquire(name)
        assert.ok(lease.token > permit.token)
        assert.equal(await one.semaphore(name, { limit: 1 }).tryAcquire(), undefined)
        await lease.release()
      },

      async 'frees the permits of a holder that stopped renewing after the ttl'(space) {
        const { one, two } = await pairOf(space)
        const name = space.name()
        const terms = { ttl: 2 * space.short, heartbeat: false }
        const ask = (locks: Locks, options = {}): Promise<Permit> =>
          locks.semaphore(name, { limit: 2 }).acquire(options)
        const dead = await inTime(Number.POSITIVE_INFINITY, () => Promise.all([ask(one, terms), ask(one, terms)]))
        for (const next of await Promise.all([ask(two), ask(two)])) {
          assert.ok(next.token > (dead.find(({ slot }) => slot === next.slot)?.token ?? 0n))
          await next.release()
        }
        for (const permit of dead) assert.throws(() => permit.assertHeld(), { code: 'LEASE_LOST' })
      },

      async 'a wait for a permit that is aborted leaves nothing behind'(space) {
        const { one, two } = await pairOf(space)
        const name = space.name()
        const held = await one.semaphore(name, { limit: 1 }).acquire()
        const controller = new AbortController()
        const waiting = two.semaphore(name, { limit: 1 }).acquire({ signal: controller.signal })
        const reason = new Error('enough')
        setTimeout(() => controller.abort(reason), 50)
        await assert.rejects(waiting, error => error === reason)
        // That it is busy must be answered within the wait.
        await inTime(LONGEST_REQUEST / 5, () =>
          assert.rejects(two.semaphore(name, { limit: 1 }).acquire({ wait: 1_000 }), { code: 'BUSY' }),
        )
        await held.release()
        await isFree(space, name)
      },

      async 'acquires all of several names, or none'(space) {
        const { one, two } = await pairOf(space)
        const [a, b] = [space.name(), space.name()]
        const held = await one.acquire(b)
        assert.equal(await two.all([a, b]).tryAcquire(), undefined)
        await isFree(space, a)
        await held.release()
        const set = await two.all([b, a]).acquire()
        assert.deepEqual(set.names, [b, a])
        assert.equal(await one.tryAcquire(a), undefined)
        await set.release()
        await isFree(space, a)
      },

      async 'sets whose names are in opposite orders do not deadlock'(space) {
        const { one, two } = await pairOf(space)
        const [a, b] = [space.name(), space.name()]
        let served = 0
        const work = async (locks: Locks, names: readonly string[]): Promise<void> => {
          await locks.all(names).using(async set => {
            set.assertHeld()
            served += 1
          })
        }
        await Promise.all([1, 2, 3].flatMap(() => [work(one, [a, b]), work(two, [b, a])]))
        assert.equal(served, 6)
      },
    },
  ),
  ...casesOf(
    { needs: ['queue'] },
    {
      async 'grants all permits that a call wants, or none'(space) {
        const { one, two } = await pairOf(space)
        const name = space.name()
        const three = one.semaphore(name, { limit: 3 })
        const pair = await three.acquire({ permits: 2 })
        assert.deepEqual(pair.slots, [0, 1])
        assert.equal(await two.semaphore(name, { limit: 3 }).tryAcquire({ permits: 2 }), undefined)
        const left = await two.semaphore(name, { limit: 3 }).tryAcquire()
        assert.equal(left?.slot, 2)
        await Promise.all([pair.release(), left?.release()])
        await isFree(space, name)
      },

      async 'readers run together, and never with a writer'(space) {
        const { one, two } = await pairOf(space)
        const name = space.name()
        const readers = await Promise.all([one.readWrite(name).reader.acquire(), two.readWrite(name).reader.acquire()])
        assert.equal(await one.readWrite(name).writer.tryAcquire(), undefined)
        const waiting = one.readWrite(name).writer.acquire()
        await Promise.all(readers.map(reader => reader.release()))
        const writer = await waiting
        assert.equal(await two.readWrite(name).reader.tryAcquire(), undefined)
        assert.equal(await two.tryAcquire(name), undefined)
        await writer.release()
        await isFree(space, name)
      },

      async 'serves waiters for permits in the order of their calls, and no try before them'(space) {
        await inTime(TURN / 2, async () => {
          const { one, two } = await pairOf(space)
          const name = space.name()
          const held = await one.semaphore(name, { limit: 2 }).acquire({ permits: 2 })
          const order: string[] = []
          let served = Number.POSITIVE_INFINITY
          const wait = async (locks: Locks, label: string, permits: number): Promise<void> => {
            await locks.semaphore(name, { limit: 2 }).using({ permits }, async () => void order.push(label))
            served = Math.min(served, performance.now())
          }
          const first = wait(two, 'two permits', 2)
          await until('it waits', async () => (await two.inspect(name)).waiters.length > 0)
          const second = wait(one, 'one permit', 1)
          await sleep(100)
          assert.equal(await one.semaphore(name, { limit: 2 }).tryAcquire(), undefined)
          const released = performance.now()
          await held.release()
          await Promise.all([first, second])
          if (order[0] === 'one permit' && served - released >= TURN) throw new TooSlow('the first let its turn pass')
          assert.deepEqual(order, ['two permits', 'one permit'])
        })
      },
    },
  ),
  ...casesOf(
    { needs: ['break'] },
    {
      async 'a permit or set that loses a part is lost, and releases the rest'(space) {
        const { one, two } = await pairOf(space)
        await inTime(space.short, async () => {
          const [name, a, b] = [space.name(), space.name(), space.name()]
          const ttl = 4 * space.short
          const permits = space.hasQueue ? 2 : 1
          const permit = await one.semaphore(name, { limit: 2 }).acquire({ permits, ttl })
          const set = await one.all([a, b]).acquire({ ttl })
          if (permit.remaining === 0 || set.remaining === 0) throw new TooSlow('it was lost before')
          await two.break(permit.name)
          await two.break(a)
          await until('both are lost', () => permit.signal.aborted && set.signal.aborted)
          assert.equal(permit.signal.reason.code, 'LEASE_LOST')
          assert.equal(set.signal.reason.leaseName, a)
          const next = await two.all([b]).acquire()
          await next.release()
          const other = await two.semaphore(name, { limit: 2 }).acquire({ permits })
          await other.release()
        })
      },
    },
  ),
]

/** The locks of two processes. */
async function pairOf(space: Space): Promise<{ one: Locks; two: Locks }> {
  const [one, two] = await Promise.all([space.locks({ ttl: space.long }), space.locks({ ttl: space.long })])
  return { one, two }
}

/** Fails unless nothing of this name and its slots is held or waited for, soon. */
async function isFree(space: Space, name: string): Promise<void> {
  const client = await space.client()
  await until(`nothing of ${name} is left`, async () => (await client.inspect({ prefix: name })).length === 0)
}
