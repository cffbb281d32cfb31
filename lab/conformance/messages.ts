import assert from 'node:assert/strict'
import { createLocks } from '../../src/index.ts'
import { type Case, casesOf } from './case.ts'
import type { Client } from './client.ts'
import type { Space } from './space.ts'
import { block, inTime, TooSlow, until } from './timing.ts'
import { gate, loseFirst, Wire } from './wire.ts'

/** Milliseconds after which a request may be sent again because it was not answered. */
const SLOW = 1_000

/** The core over this store, when requests and replies are lost or late. */
export const messageCases: Case[] = [
  ...casesOf(
    {},
    {
      async 'recovers a lease whose reply was lost, with the same token'(space) {
        await inTime(SLOW, async () => {
          const { wire, locks, client } = await wired(space)
          wire.onReply = loseFirst('acquire')
          const name = space.name()
          const asked = performance.now()
          const lease = await locks.acquire(name)
          assertSentTwice(wire, 'acquire', asked)
          const records = await client.inspect({ name })
          assert.deepEqual(
            records.map(({ state, token }) => [state, token]),
            [['held', lease.token]],
          )
          await lease.release()
          assert.deepEqual(await client.inspect({ name }), [])
        })
      },

      async 'keeps a lease when the reply to a renewal was lost'(space) {
        const { wire, locks } = await wired(space)
        const lease = await locks.acquire(space.name())
        wire.onReply = loseFirst('renew')
        await assert.rejects(lease.extend(), { code: 'STORE_UNAVAILABLE' })
        lease.assertHeld()
        assert.ok((await lease.extend()) > 0)
        await lease.release()
      },

      async 'releases a lease although the reply was lost'(space) {
        await inTime(SLOW, async () => {
          const { wire, locks, client } = await wired(space)
          const name = space.name()
          const lease = await locks.acquire(name)
          wire.onReply = loseFirst('release')
          const asked = performance.now()
          await lease.release()
          assertSentTwice(wire, 'release', asked)
          assert.deepEqual(await client.inspect({ name }), [])
        })
      },

      async 'an acquire that arrives after its withdrawal leaves nothing behind'(space) {
        for (const wait of [0, 60_000]) {
          const { wire, locks, client } = await wired(space)
          const { hook, open } = gate()
          wire.onRequest = verb => (verb === 'acquire' ? hook(verb) : undefined)
          const name = space.name()
          const controller = new AbortController()
          const waiting = locks.acquire(name, { wait, signal: controller.signal })
          controller.abort(new Error('given up'))
          await assert.rejects(waiting, /given up/)
          await until('it is withdrawn', () => wire.answered('release') === 1)
          open()
          await until('it arrives', () => wire.answered('acquire') === 1)
          assert.deepEqual(await client.inspect({ name }), [])
          await client.hold(space.claim({ name }))
        }
      },

      async 'an acquire that arrives after its withdrawal leaves no waiter behind'(space) {
        const { wire, locks, client } = await wired(space)
        const holder = space.claim()
        await client.hold(holder)
        const { hook, open } = gate()
        wire.onRequest = verb => (verb === 'acquire' ? hook(verb) : undefined)
        const controller = new AbortController()
        const waiting = locks.acquire(holder.name, { signal: controller.signal })
        controller.abort(new Error('given up'))
        await assert.rejects(waiting, /given up/)
        await until('it is withdrawn', () => wire.answered('release') === 1)
        open()
        await until('it arrives', () => wire.answered('acquire') === 1)
        assert.equal((await client.inspect({ name: holder.name })).length, 1)
      },

      async 'a renewal that arrives after the release leaves nothing behind'(space) {
        const { wire, locks, client } = await wired(space)
        const name = space.name()
        const { hook, open } = gate()
        let sent = 0
        wire.onRequest = verb => {
          if (verb !== 'renew') return
          sent += 1
          return hook(verb)
        }
        // On a slow machine a lease may be lost before it is extended, and then nothing is sent.
        while (sent === 0) {
          const lease = await locks.acquire(name, { ttl: 8 * space.short, heartbeat: false })
          await assert.rejects(lease.extend())
          await lease.release()
        }
        open()
        await until('it arrives', () => wire.answered('renew') === sent)
        assert.deepEqual(await client.inspect({ name }), [])
      },

      async 'releases a lease while a copy of its acquire arrives'(space) {
        const { wire, locks, client } = await wired(space)
        const { hook, open } = gate()
        let first = true
        wire.onRequest = verb => {
          if (verb !== 'acquire' || !first) return
          first = false
          return hook(verb)
        }
        const name = space.name()
        const lease = await locks.acquire(name, { ttl: 8 * space.short })
        await lease.release()
        open()
        await until('the copy arrives', () => wire.answered('acquire') === 2)
        assert.deepEqual(await client.inspect({ name }), [])
      },
    },
  ),
  ...casesOf(
    { alone: true },
    {
      async 'rejects a grant that arrives after its ttl'(space) {
        const { wire, locks, client } = await wired(space)
        const name = space.name()
        let first = true
        wire.onReply = () => {
          if (first) block(2 * space.short)
          first = false
        }
        const [acquired] = await Promise.allSettled([locks.acquire(name, { ttl: space.short, heartbeat: false })])
        if (acquired.status === 'rejected') assert.equal(acquired.reason.code, 'STORE_UNAVAILABLE')
        else assert.ok(wire.sent('acquire') > 1, 'it did not ask again')
        const next = space.claim({ name })
        await until('the name is free', async () => (await client.acquire(next)).held)
        if (acquired.status === 'fulfilled') assert.throws(() => acquired.value.assertHeld(), { code: 'LEASE_LOST' })
      },
    },
  ),
]

async function wired(space: Space): Promise<{ wire: Wire; locks: ReturnType<typeof createLocks>; client: Client }> {
  const [client, other] = await space.pair()
  await other.inspect({ name: space.name() }) // opens its connections, which may take longer than a short ttl
  const wire = new Wire(other.store)
  return { wire, client, locks: space.manage(createLocks(wire, { ttl: space.long })) }
}

/** The request whose reply was lost was sent once more. A slow server may have needed a third. */
function assertSentTwice(wire: Wire, verb: 'acquire' | 'release', asked: number): void {
  if (wire.sent(verb) > 2 && performance.now() - asked > SLOW) throw new TooSlow('the server did not answer in time')
  assert.equal(wire.sent(verb), 2)
}
