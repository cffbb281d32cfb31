import assert from 'node:assert/strict'
import { type Case, casesOf } from './case.ts'
import { inTime, TooSlow, until } from './timing.ts'

/** The note of a lease, changed while it is held. */
export const noteCases: Case[] = casesOf(
  {},
  {
    async 'R7: shows the latest note of the holder to every client, and to refused claims'(space) {
      const [one, two] = await space.pair()
      const claim = space.claim({ note: 'at first' })
      await one.hold(claim)
      for (const note of ['then', 'then', '', 'ö"\\🔒'.repeat(28), 'at last']) {
        assert.equal(await one.annotate({ ...claim, note }), true)
        const [record] = await two.inspect({ name: claim.name })
        const [listed] = await two.inspect({ prefix: claim.name })
        const { holder } = await two.isRefused(space.claim({ name: claim.name }))
        assert.deepEqual([record?.note, listed?.note, holder?.note], [note, note, note])
        assert.deepEqual([record?.owner, record?.state], [claim.owner, 'held'])
      }
    },

    async 'R7: keeps the note through renewals, and when the claim asks again'(space) {
      const client = await space.client()
      const claim = space.claim({ note: 'old' })
      const { token } = await client.hold(claim)
      await client.annotate({ ...claim, note: 'new' })
      assert.equal((await client.renew(claim))?.token, token)
      assert.equal((await client.inspect({ name: claim.name }))[0]?.note, 'new')
      assert.equal((await client.hold(claim)).token, token)
      const [record] = await client.inspect({ name: claim.name })
      assert.deepEqual([record?.note, record?.token], ['new', token])
    },

    async 'R7: a new note changes neither the end of the lease nor its token'(space) {
      await inTime(space.short, async () => {
        const [one, two] = await space.pair()
        const claim = space.claim({ ttl: 3 * space.short })
        const waiting = space.claim({ name: claim.name, queue: true })
        const sent = performance.now()
        const { token } = await one.hold(claim)
        await two.isRefused(waiting)
        const [before] = await two.inspect({ name: claim.name })
        await one.annotate({ ...claim, note: 'new', ttl: 100 * space.long })
        const [after] = await two.inspect({ name: claim.name })
        if (performance.now() - sent > 2 * space.short) throw new TooSlow('the requests took most of the ttl')
        assert.equal(after?.token, token)
        assert.ok(after.remaining < (before?.remaining ?? 0) + space.short, `${after.remaining} ms remain`)
        const next = await until('it is passed on', async () => {
          const answer = await two.acquire(waiting)
          return answer.held ? answer.token : undefined
        })
        assert.ok(next > token)
        assert.ok(performance.now() - sent < 50 * space.long, 'the note made the lease longer')
        assert.equal(await one.annotate({ ...claim, note: 'late' }), false)
        const [last] = await two.inspect({ name: claim.name })
        assert.deepEqual([last?.token, last?.note], [next, waiting.note])
      })
    },

    async 'R7: a new note leaves the queue as it is'(space) {
      const [one, two] = await space.pair()
      const claim = space.claim()
      const waiters = ['first', 'second'].map(note => space.claim({ name: claim.name, queue: true, note }))
      await one.hold(claim)
      for (const waiter of waiters) await two.isRefused(waiter)
      await one.annotate({ ...claim, note: 'new' })
      const [, ...queue] = await two.inspect({ name: claim.name })
      assert.deepEqual(
        queue.map(({ owner, note, position }) => [owner, note, position]),
        waiters.map(({ owner, note }, position) => [owner, note, position]),
      )
    },

    async 'R7: refuses a new note for an expired lease, even if nobody has acquired the name since'(space) {
      const client = await space.client()
      const claim = space.claim({ ttl: space.short })
      await client.hold(claim)
      await until('the note is refused', async () => !(await client.annotate({ ...claim, note: 'late' })))
      // The holder may be notified before the name is free.
      await until('it is no longer shown', async () => (await client.inspect({ name: claim.name })).length === 0)
    },

    async 'R7: refuses a new note for a claim that is unknown, waiting or released'(space) {
      const client = await space.client()
      const unknown = space.claim({ note: 'unknown' })
      assert.equal(await client.annotate(unknown), false)
      assert.deepEqual(await client.inspect({ name: unknown.name }), [])
      const held = space.claim({ note: 'held' })
      const waiting = space.claim({ name: held.name, queue: true, note: 'waiting' })
      await client.hold(held)
      await client.isRefused(waiting)
      assert.equal(await client.annotate({ ...waiting, note: 'mine' }), false)
      assert.equal((await client.inspect({ name: held.name }))[0]?.note, 'held')
      await client.release(waiting)
      await client.release(held)
      assert.equal(await client.annotate({ ...held, note: 'late' }), false)
      assert.deepEqual(await client.inspect({ name: held.name }), [])
    },

    async 'R7: releases a lease whose note was changed, and shows the next holder nothing of it'(space) {
      const client = await space.client()
      const claim = space.claim()
      await client.hold(claim)
      await client.annotate({ ...claim, note: 'changed' })
      assert.equal(await client.release(claim), 'released')
      assert.deepEqual(await client.inspect({ name: claim.name }), [])
      await client.hold(space.claim({ name: claim.name, note: 'next' }))
      assert.equal((await client.inspect({ name: claim.name }))[0]?.note, 'next')
    },

    async 'R7: refuses a new note for a broken lease'(space) {
      const [one, two] = await space.pair()
      const claim = space.claim()
      await one.hold(claim)
      await two.break(claim.name)
      assert.equal(await one.annotate({ ...claim, note: 'late' }), false)
    },

    async 'publishes the notes of a lease in the order of the calls'(space) {
      const [locks, other] = [await space.locks({ ttl: space.long, note: '0' }), await space.locks()]
      const lease = await locks.acquire(space.name())
      await Promise.all(['1', '2', '3', '4', '5'].map(note => lease.annotate(note)))
      assert.equal((await other.inspect(lease.name)).holders[0]?.note, '5')
      await lease.extend()
      assert.equal((await other.inspect(lease.name)).holders[0]?.note, '5')
      await lease.release()
      await assert.rejects(lease.annotate('6'), { code: 'CLOSED' })
    },
  },
  {
    'R7: a new note leaves the queue as it is': ['queue'],
    'R7: refuses a new note for a broken lease': ['break'],
  },
)
