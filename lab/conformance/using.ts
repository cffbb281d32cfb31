import assert from 'node:assert/strict'
import { type Case, casesOf } from './case.ts'
import { sleep, until } from './timing.ts'

/** The core over this store: work under a lease, and close. */
export const usingCases: Case[] = casesOf(
  {},
  {
    async 'using runs work under a lease, resolves to its result and releases'(space) {
      const [locks, client] = [await space.locks(), await space.client()]
      const name = space.name()
      const result = await locks.using(name, async lease => {
        assert.equal((await client.inspect({ name }))[0]?.token, lease.token)
        return 42
      })
      assert.equal(result, 42)
      assert.deepEqual(await client.inspect({ name }), [])
    },

    async 'using rejects with the error of the work, and releases'(space) {
      const [locks, client] = [await space.locks(), await space.client()]
      const name = space.name()
      const mine = new Error('mine')
      const failed = locks.using(name, () => {
        throw mine
      })
      await assert.rejects(failed, error => error === mine)
      assert.deepEqual(await client.inspect({ name }), [])
    },

    async 'using rejects LEASE_LOST with the result if the work continued after the loss'(space) {
      const [locks, client] = [await space.locks({ ttl: 2 * space.short }), await space.client()]
      const name = space.name()
      const failed = locks.using(name, async ({ signal }) => {
        await client.break(name)
        await until('the signal aborts', () => signal.aborted)
        return 42
      })
      await assert.rejects(failed, { code: 'LEASE_LOST', result: 42, leaseName: name })
    },

    async 'using rejects LEASE_LOST if only the release shows the loss'(space) {
      const [locks, client] = [await space.locks({ ttl: space.long }), await space.client()]
      const name = space.name()
      const failed = locks.using(name, async () => {
        await client.break(name)
        return 42
      })
      await assert.rejects(failed, { code: 'LEASE_LOST', result: 42 })
    },

    async 'using rejects with the reason of the loss if the work failed because of it'(space) {
      const [locks, client] = [await space.locks({ ttl: 2 * space.short }), await space.client()]
      const name = space.name()
      const failed = locks.using(name, async ({ signal }) => {
        await client.break(name)
        await until('the signal aborts', () => signal.aborted)
        throw new DOMException('stopped', 'AbortError')
      })
      await assert.rejects(failed, { code: 'LEASE_LOST' })
    },

    async "aborts the work by the caller's signal, answers that reason and releases"(space) {
      const [locks, client] = [await space.locks(), await space.client()]
      const name = space.name()
      const controller = new AbortController()
      const reason = new Error('enough')
      const failed = locks.using(name, { signal: controller.signal }, async ({ signal }) => {
        controller.abort(reason)
        signal.throwIfAborted()
      })
      await assert.rejects(failed, error => error === reason)
      assert.deepEqual(await client.inspect({ name }), [])
    },

    async 'close rejects waits, and withdraws their claims'(space) {
      const client = await space.client()
      const holders = [space.claim(), space.claim()]
      await Promise.all(holders.map(holder => client.hold(holder)))
      const locks = await space.locks()
      const waits = holders.flatMap(({ name }) => [locks.acquire(name), locks.using(name, async () => {})])
      const settled = Promise.allSettled(waits)
      await sleep(100)
      await locks.close()
      for (const result of await settled) assert.equal(result.status === 'rejected' && result.reason.code, 'CLOSED')
      for (const { name } of holders) assert.equal((await client.inspect({ name })).length, 1)
    },

    async 'close notifies work, awaits it and releases its lease'(space) {
      const [locks, client] = [await space.locks(), await space.client()]
      const name = space.name()
      let started = false
      let finished = false
      const working = locks.using(name, async ({ signal }) => {
        started = true
        await new Promise(resolve => signal.addEventListener('abort', resolve))
        assert.equal(signal.reason.code, 'CLOSED')
        await sleep(50)
        finished = true
        return 42
      })
      await until('the work runs', () => started)
      await locks.close()
      assert.ok(finished)
      assert.equal(await working, 42)
      assert.deepEqual(await client.inspect({ name }), [])
    },

    async 'close leaves the lease of work that does not end until its ttl'(space) {
      const [locks, client] = [await space.locks({ ttl: 2 * space.short }), await space.client()]
      const lease = await locks.acquire(space.name())
      await locks.close({ grace: 20 })
      const next = space.claim({ name: lease.name })
      await until('it is passed on', async () => (await client.acquire(next)).held)
      assert.throws(() => lease.assertHeld(), { code: 'LEASE_LOST' })
    },

    async 'close takes effect once, and later calls reject CLOSED'(space) {
      const locks = await space.locks()
      await Promise.all([locks.close(), locks.close()])
      await locks[Symbol.asyncDispose]()
      const name = space.name()
      const calls = [locks.acquire(name), locks.tryAcquire(name), locks.inspect(name), locks.break(name)]
      for (const result of await Promise.allSettled(calls))
        assert.equal(result.status === 'rejected' && result.reason.code, 'CLOSED')
    },
  },
  {
    'using rejects LEASE_LOST with the result if the work continued after the loss': ['break'],
    'using rejects LEASE_LOST if only the release shows the loss': ['break'],
    'using rejects with the reason of the loss if the work failed because of it': ['break'],
  },
)
