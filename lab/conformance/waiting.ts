import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { createLocks } from '../../src/index.ts'
import { TURN } from '../../src/store.ts'
import { type Case, casesOf } from './case.ts'
import { inTime, sleep, TooSlow, until } from './timing.ts'
import { gate, Wire } from './wire.ts'

/** The core over this store: waiting, and giving up. */
export const waitingCases: Case[] = [
  ...casesOf(
    {},
    {
      async 'serves all waiters of two clients, each once and one at a time'(space) {
        const clients = [await space.locks({ ttl: space.long }), await space.locks({ ttl: space.long })] as const
        const name = space.name()
        let inside = 0
        let served = 0
        const tokens: bigint[] = []
        const work = async (index: number): Promise<void> => {
          await clients[index % 2 ? 1 : 0].using(name, async lease => {
            inside += 1
            assert.equal(inside, 1, 'two hold at once')
            tokens.push(lease.token)
            await sleep(index % 3)
            lease.assertHeld()
            served += 1
            inside -= 1
          })
        }
        await Promise.all(Array.from({ length: 40 }, (_, index) => work(index)))
        assert.equal(served, 40)
        assert.deepEqual(
          tokens,
          tokens.toSorted((a, b) => (a < b ? -1 : 1)),
        )
        assert.equal(new Set(tokens).size, 40)
      },

      async 'settles an aborted wait at once with the reason, and leaves no claim and no listener'(space) {
        const [locks, client] = [await space.locks({ ttl: 10 * space.long }), await space.client()]
        const holder = space.claim()
        await client.hold(holder)
        const controller = new AbortController()
        const { signal } = controller
        const waiting = locks.acquire(holder.name, { signal })
        let reason: unknown
        waiting.catch((error: unknown) => {
          reason = error
        })
        await sleep(50)
        const expected = { a: 'reason of any kind' }
        controller.abort(expected)
        await new Promise(resolve => setImmediate(resolve))
        assert.equal(reason, expected)
        assert.equal(getEventListeners(signal, 'abort').length, 0)
        const onlyHolder = async (): Promise<boolean> => (await client.inspect({ name: holder.name })).length === 1
        await until('the claim is withdrawn', onlyHolder)
      },

      async 'sends no request if the signal has already aborted'(space) {
        const wire = new Wire((await space.client()).store)
        const locks = space.manage(createLocks(wire))
        const reason = new Error('before')
        await assert.rejects(
          locks.acquire(space.name(), { signal: AbortSignal.abort(reason) }),
          error => error === reason,
        )
        assert.deepEqual(wire.exchanges, [])
      },

      async 'gives up at the end of the wait, reports the holder and leaves nothing behind'(space) {
        const [locks, client] = [await space.locks({ ttl: 10 * space.long }), await space.client()]
        const holder = space.claim({ owner: 'the holder' })
        await client.hold(holder)
        for (const wait of [0, space.short]) {
          await inTime(space.short, () =>
            assert.rejects(locks.acquire(holder.name, { wait }), error => {
              const {
                code,
                holder: named,
                message,
              } = error as { code?: string; holder?: { owner: string }; message: string }
              assert.equal(code, 'BUSY')
              if (!named && wait > 0) throw new TooSlow('the first request outlasted the wait')
              assert.equal(named?.owner, 'the holder')
              assert.match(message, /the holder/)
              return true
            }),
          )
        }
        await until('nothing is left', async () => (await client.inspect({ name: holder.name })).length === 1)
      },

      async 'tryAcquire returns a lease, or undefined and leaves nothing behind'(space) {
        const [one, two] = [await space.locks(), await space.locks()]
        const name = space.name()
        const lease = await one.tryAcquire(name)
        assert.ok(lease)
        assert.equal(await two.tryAcquire(name), undefined)
        assert.equal((await two.inspect(name)).waiters.length, 0)
        await lease.release()
        assert.ok(await two.tryAcquire(name))
      },

      async 'acquires a name whose lease expires, not before its end and soon after'(space) {
        await inTime(space.short, async () => {
          const [locks, client] = [await space.locks({ ttl: space.short }), await space.client()]
          const holder = space.claim({ ttl: space.short })
          const sent = performance.now()
          const { token } = await client.hold(holder)
          const lease = await locks.acquire(holder.name)
          const after = performance.now() - sent
          assert.ok(lease.token > token)
          assert.ok(after >= space.short - 2, `it was acquired after ${after} ms`)
          if (after > space.short + space.latest) throw new TooSlow(`it was acquired after ${after} ms`)
        })
      },

      async 'acquires a name whose lease was broken'(space) {
        const [locks, client] = [await space.locks(), await space.client()]
        const holder = space.claim()
        await client.hold(holder)
        const waiting = locks.acquire(holder.name)
        await sleep(50)
        const broken = (await client.break(holder.name)) ?? assert.fail('nobody held')
        assert.ok((await waiting).token > broken)
      },

      async 'a waiter that died delays the next one only briefly'(space) {
        const wire = new Wire((await space.client()).store)
        const [dead, locks, client] = [createLocks(wire), await space.locks({ ttl: space.short }), await space.client()]
        const holder = space.claim()
        await client.hold(holder)
        const controller = new AbortController()
        const never = dead.acquire(holder.name, { ttl: space.short, signal: controller.signal })
        never.catch(() => {})
        await until('it waits', () => wire.answered('acquire') > 0)
        wire.onRequest = gate().hook
        // On a slow machine a request of so short a ttl may get no answer in time.
        const waiting = until('it is served', () => locks.acquire(holder.name).catch(() => undefined))
        await client.release(holder)
        await waiting
        controller.abort()
      },
    },
    {
      'acquires a name whose lease was broken': ['break'],
    },
  ),
  ...casesOf(
    // A waiter that is not woken may ask after its grace period.
    { needs: ['queue', 'watch'] },
    {
      async 'serves waiters of two clients in order of arrival'(space) {
        // A waiter that asks after its grace period is overtaken. That is correct.
        await inTime(TURN / 2, async () => {
          const [one, two, client] = [await space.locks(), await space.locks(), await space.client()]
          const holder = space.claim()
          await client.hold(holder)
          const served: number[] = []
          const times: number[] = []
          const waits: Promise<void>[] = []
          for (let index = 0; index < 10; index += 1) {
            const work = async (): Promise<void> => {
              served.push(index)
              times.push(performance.now())
            }
            waits.push((index % 2 ? one : two).using(holder.name, { ttl: space.long }, work))
            const isWaiting = async (): Promise<boolean> =>
              (await client.inspect({ name: holder.name })).length === index + 2
            await until(`waiter ${index} waits in the queue`, isWaiting)
          }
          const released = performance.now()
          await client.release(holder)
          await Promise.all(waits)
          const slowest = Math.max(...times.map((time, index) => time - (times[index - 1] ?? released)))
          const isInOrder = served.every((index, place) => index === place)
          if (!isInOrder && slowest >= TURN) throw new TooSlow(`a handover took ${slowest} ms`) // of the server
          assert.deepEqual(served, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
        })
      },
    },
  ),
  ...casesOf(
    { needs: ['queue'], alone: true },
    {
      async 'leaves nothing behind of 1,000 waiters that are cancelled at once'(space) {
        const [locks, client] = [await space.locks({ ttl: 10 * space.long }), await space.client()]
        const holder = space.claim()
        await client.hold(holder)
        await locks.inspect(holder.name)
        const before = timers()
        const controller = new AbortController()
        const { signal } = controller
        const waits = Array.from({ length: 1_000 }, () => locks.acquire(holder.name, { signal }))
        const settled = Promise.allSettled(waits)
        await until('all wait', async () => (await client.inspect({ name: holder.name })).length === 1_001)
        assert.equal(getEventListeners(signal, 'abort').length, 1)
        const reason = new Error('all of you')
        controller.abort(reason)
        for (const result of await settled) assert.equal(result.status === 'rejected' && result.reason, reason)
        assert.equal(getEventListeners(signal, 'abort').length, 0)
        await until('all are withdrawn', async () => (await client.inspect({ name: holder.name })).length === 1)
        await until('no timer is left', () => timers() <= before)
        await client.release(holder)
        // A withdrawal that was repeated may still have the name's row locked, so the name is briefly busy.
        const next = space.claim({ name: holder.name })
        await until('the next one holds', async () => (await client.acquire(next)).held)
      },
    },
  ),
  ...casesOf(
    { alone: true },
    {
      async 'leaks nothing over many leases'(space) {
        const [locks, client] = [await space.locks(), await space.client()]
        const { signal } = new AbortController()
        const prefix = space.name()
        const { cycles = 1_000 } = space.harness
        const cycle = async (index: number): Promise<void> => {
          await using lease = await locks.acquire(`${prefix}/${index}`, { signal })
          lease.assertHeld()
        }
        await cycle(0)
        const before = timers()
        for (let index = 0; index < cycles; index += 20)
          await Promise.all(Array.from({ length: 20 }, (_, k) => cycle(index + k)))
        assert.equal(getEventListeners(signal, 'abort').length, 0)
        assert.deepEqual(await client.inspect({ prefix }), [])
        await until('no timer is left', () => timers() <= before)
      },
    },
  ),
]

/** Timers of this process that keep it alive. */
function timers(): number {
  return process.getActiveResourcesInfo().filter(type => type === 'Timeout').length
}
