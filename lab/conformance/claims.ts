import assert from 'node:assert/strict'
import { type Claim, LONGEST_REQUEST } from '../../src/store.ts'
import { type Case, casesOf } from './case.ts'
import type { Client } from './client.ts'
import { inTime, TooSlow, until } from './timing.ts'

/** Acquire: grants and refusals. */
export const claimCases: Case[] = casesOf(
  {},
  {
    async 'R6: grants a free name, with a token and at least the requested ttl'(space) {
      const client = await space.client()
      const claim = space.claim()
      const { token, ttl } = await client.hold(claim)
      assert.equal(typeof token, 'bigint')
      assert.ok(token > 0n, `the token is ${token}`)
      assert.ok(ttl >= claim.ttl, `${ttl} ms of ${claim.ttl}`)
    },

    async 'R1: a claim that asks again gets the same lease'(space) {
      const client = await space.client()
      const claim = space.claim()
      const { token } = await client.hold(claim)
      assert.equal((await client.hold(claim)).token, token)
      assert.equal((await client.inspect({ name: claim.name })).length, 1)
    },

    async 'R1: a claim that asks again through another client gets the same lease'(space) {
      const [one, two] = await space.pair()
      const claim = space.claim()
      const { token } = await one.hold(claim)
      assert.equal((await two.hold(claim)).token, token)
      assert.equal((await two.renew(claim))?.token, token)
      assert.equal(await two.release(claim), 'released')
    },

    async 'R1: copies of a claim that arrive together get the same lease'(space) {
      const client = await space.client()
      await getOneToken(space.claim(), [client, client])
    },

    async 'R1: copies of a claim that arrive together through two clients get the same lease'(space) {
      await getOneToken(space.claim(), await space.pair())
    },

    async 'R1: distinguishes claims of one owner by their ids'(space) {
      const client = await space.client()
      const claim = space.claim({ owner: 'the same' })
      const other = space.claim({ owner: 'the same', name: claim.name, note: 'other', queue: true })
      const { token } = await client.hold(claim)
      await client.isRefused(other)
      assert.equal(await client.renew(other), undefined)
      assert.equal(await client.annotate(other), false)
      await client.release(other)
      const [record, ...rest] = await client.inspect({ name: claim.name })
      assert.deepEqual([record?.token, record?.note, rest], [token, '', []])
      assert.equal((await client.renew(claim))?.token, token)
    },

    async 'R1: extends the lease of a claim that asks again'(space) {
      const client = await space.client()
      const claim = space.claim({ ttl: space.long })
      await client.hold(claim)
      await client.hold({ ...claim, ttl: 10 * space.long })
      const [record] = await client.inspect({ name: claim.name })
      assert.ok(record && record.remaining > space.long, `${record?.remaining} ms remain`)
    },

    async 'R3: a stale copy of the acquire never shortens its lease'(space) {
      const client = await space.client()
      const claim = space.claim({ ttl: space.long })
      await client.hold(claim)
      await client.renew({ ...claim, ttl: 10 * space.long })
      await client.hold(claim)
      const [record] = await client.inspect({ name: claim.name })
      assert.ok(record && record.remaining > space.long, `${record?.remaining} ms remain`)
    },

    async 'R2: refuses a held name, and reports its holder and when to ask again'(space) {
      const [one, two] = await space.pair()
      const claim = space.claim({ owner: 'host:1:abc', note: 'the nightly run' })
      const { token } = await one.hold(claim)
      const { holder, retryAfter } = await two.isRefused(space.claim({ name: claim.name }))
      assert.ok(holder, 'no holder is named')
      const { remaining, ...rest } = holder
      const expected = { name: claim.name, state: 'held', owner: 'host:1:abc', note: 'the nightly run', token }
      for (const [field, value] of Object.entries(expected))
        assert.equal(rest[field as keyof typeof rest], value, field)
      assert.ok(remaining > 0, `${remaining} ms remain`)
      assert.ok(retryAfter > 0 && Number.isFinite(retryAfter), `retryAfter is ${retryAfter}`)
    },

    async 'R2: answers a claim that must wait at once, whether it queues or not'(space) {
      const [one, two] = await space.pair()
      // A busy machine is slow now and then. A store that waits is slow in each attempt.
      await inTime(Number.POSITIVE_INFINITY, async () => {
        const holder = space.claim()
        await one.hold(holder)
        for (const queue of [false, true]) {
          const claim = space.claim({ name: holder.name, queue })
          for (const client of [one, two]) {
            const sent = performance.now()
            await client.isRefused(claim)
            const took = performance.now() - sent
            if (took > space.latest) throw new TooSlow(`the busy answer took ${took} ms`)
          }
        }
        assert.ok(await one.renew(holder), 'the answers came when the name was free')
      })
    },

    async 'R2: keeps nothing of a claim that does not queue'(space) {
      const client = await space.client()
      const claim = space.claim()
      await client.hold(claim)
      for (let tries = 0; tries < 3; tries += 1) await client.isRefused(space.claim({ name: claim.name }))
      const records = await client.inspect({ name: claim.name })
      assert.deepEqual(
        records.map(record => record.state),
        ['held'],
      )
      await client.release(claim)
      await client.hold(space.claim({ name: claim.name }))
    },

    async 'R11: distinguishes similar names'(space) {
      const client = await space.client()
      const name = space.name()
      const names = [name, `${name}/b`, `${name}:b`, `${name} `, `${name}b`, name.toUpperCase()]
      const grants = await Promise.all(names.map(other => client.hold(space.claim({ name: other }))))
      assert.equal(grants.length, names.length)
    },

    async 'R6: accepts the longest ttl, and the shortest that it declares'(space) {
      const client = await space.client()
      const longest = space.claim({ ttl: 2_147_483_647 })
      await client.hold(longest)
      const [record] = await client.inspect({ name: longest.name })
      assert.ok(record && record.remaining > 2_147_000_000, `${record?.remaining} ms remain`)
      const grant = await client.hold(space.claim({ ttl: client.store.guarantees.minTtl }))
      assert.ok(grant.ttl >= client.store.guarantees.minTtl)
    },
  },
  {
    'R1: a claim that asks again through another client gets the same lease': ['apart'],
    'R1: copies of a claim that arrive together get the same lease': ['apart'],
    'R1: copies of a claim that arrive together through two clients get the same lease': ['apart', 'one token'],
  },
)

async function getOneToken(claim: Claim, clients: readonly [Client, Client]): Promise<void> {
  const copies = Array.from({ length: 10 }, (_, index) => clients[index % 2 ? 1 : 0].hold(claim))
  const tokens = (await Promise.all(copies)).map(({ token }) => token)
  assert.equal(new Set(tokens).size, 1, `tokens: ${tokens}`)
  assert.equal((await clients[0].renew(claim))?.token, tokens[0])
}

/** Alone, because hundreds of requests at once keep the process so busy that other cases would miss their timeouts. */
export const burstCases: Case[] = casesOf(
  { alone: true },
  {
    async 'R1: grants a name to exactly one of many concurrent claims'(space) {
      const clients = await space.pair()
      const name = space.name()
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, index) => clients[index % 2 ? 1 : 0].acquire(space.claim({ name }))),
      )
      assert.equal(answers.filter(answer => answer.held).length, 1)
    },

    async 'R13: grants hundreds of names requested at once'(space) {
      const client = await space.client()
      const prefix = space.name()
      const { burst: length = 500 } = space.harness
      const claims = Array.from({ length }, (_, index) => space.claim({ name: `${prefix}/${index}` }))
      await Promise.all(claims.map(claim => client.hold(claim)))
      const renewed = await Promise.all(claims.map(claim => client.renew(claim)))
      assert.ok(renewed.every(grant => grant?.held))
      const released = await Promise.all(claims.map(claim => client.release(claim)))
      assert.ok(released.every(answer => answer === 'released'))
      assert.deepEqual(await client.inspect({ prefix }), [])
    },
  },
)

/** Release, also of claims that have not arrived yet. */
export const releaseCases: Case[] = casesOf(
  {},
  {
    async 'R4: a release frees the name for every client'(space) {
      const [one, two] = await space.pair()
      const claim = space.claim()
      await one.hold(claim)
      assert.equal(await one.release(claim), 'released')
      assert.deepEqual(await one.inspect({ name: claim.name }), [])
      await two.hold(space.claim({ name: claim.name }))
    },

    async 'R4: answers gone for a claim that was already released, or that never existed'(space) {
      const client = await space.client()
      const claim = space.claim()
      await client.hold(claim)
      assert.equal(await client.release(claim), 'released')
      assert.equal(await client.release(claim), 'gone')
      assert.equal(await client.release(space.claim()), 'gone')
    },

    async 'R4: a stale release never frees the next holder'(space) {
      const [one, two] = await space.pair()
      const claim = space.claim()
      await one.hold(claim)
      await one.release(claim)
      const next = space.claim({ name: claim.name })
      const { token } = await two.hold(next)
      assert.equal(await one.release(claim), 'gone')
      assert.equal((await two.renew(next))?.token, token)
    },

    async 'R4: releases by claim, never by name'(space) {
      const client = await space.client()
      const claim = space.claim()
      await client.hold(claim)
      assert.equal(await client.release(space.claim({ name: claim.name })), 'gone')
      assert.ok(await client.renew(claim))
    },

    async 'R4: refuses a claim that arrives after its withdrawal, and keeps nothing of it'(space) {
      const [one, two] = await space.pair()
      for (const queue of [false, true]) {
        const claim = space.claim({ queue })
        assert.equal(await one.release(claim), 'gone')
        await two.isRefused(claim)
        assert.deepEqual(await one.inspect({ name: claim.name }), [])
        await one.hold(space.claim({ name: claim.name }))
      }
    },

    async 'R4: refuses a claim that arrives after its withdrawal while others hold or wait'(space) {
      const client = await space.client()
      const holder = space.claim()
      await client.hold(holder)
      const late = space.claim({ name: holder.name, queue: true })
      assert.equal(await client.release(late), 'gone')
      await client.isRefused(late)
      assert.equal((await client.inspect({ name: holder.name })).length, 1)
      await client.release(holder)
      await client.hold(space.claim({ name: holder.name }))
    },

    async 'R4: refuses each withdrawn claim, whatever happened to the name since'(space) {
      await inTime(LONGEST_REQUEST / 5, async () => {
        const client = await space.client()
        const name = space.name()
        const withdrawn = [false, true, false].map(queue => space.claim({ name, queue }))
        const first = performance.now()
        for (const claim of withdrawn) {
          assert.equal(await client.release(claim), 'gone')
          const holder = space.claim({ name })
          await client.hold(holder)
          assert.equal(await client.release(holder), 'released')
        }
        const answers = await Promise.all(withdrawn.map(claim => client.acquire(claim)))
        if (performance.now() > first + LONGEST_REQUEST) throw new TooSlow('the acquires may have arrived too late')
        assert.deepEqual(
          answers.map(({ held }) => held),
          [false, false, false],
        )
        assert.deepEqual(await client.inspect({ name }), [])
      })
    },

    async 'R4: refuses a copy of a claim whose release was answered with gone'(space) {
      const client = await space.client()
      const claim = space.claim()
      await client.hold(claim)
      assert.equal(await client.release(claim), 'released')
      assert.equal(await client.release(claim), 'gone')
      await client.isRefused(claim)
      assert.deepEqual(await client.inspect({ name: claim.name }), [])
    },

    async 'R4: refuses a copy of a claim that was withdrawn after its lease had ended'(space) {
      const client = await space.client()
      const claim = space.claim({ ttl: space.short })
      await client.hold(claim)
      await until('the lease has ended', async () => (await client.inspect({ name: claim.name })).length === 0)
      assert.equal(await client.release(claim), 'gone')
      await client.isRefused(claim)
      assert.deepEqual(await client.inspect({ name: claim.name }), [])
    },
  },
  {
    'R4: refuses a claim that arrives after its withdrawal, and keeps nothing of it': ['apart'],
  },
)
