import assert from 'node:assert/strict'
import type { Claim, Grant } from '../contract/store.ts'
import { LONGEST_REQUEST, TURN } from '../contract/time.ts'
import { type Case, casesOf } from './case.ts'
import type { Client } from './client.ts'
import type { Space } from './space.ts'
import { inTime, TooSlow, until } from './timing.ts'

/** Some of several names at once, of stores that can acquire them in one step. */
export const selectionCases: Case[] = [
  ...casesOf(
    { needs: ['selection'] },
    {
      async 'R14: grants as many names as are wanted, in the order of the claims, or none'(space) {
        const [one, two] = await space.pair()
        const { gate, claims } = some(space, 4)
        await two.hold(space.claim({ name: `${gate}/0` }))
        const answer = await one.acquireSome({ claims, want: 2, gate })
        assert.ok(answer.held)
        assert.deepEqual(held(answer.grants), [1, 2])
        const more = await two.acquireSome({ claims: again(space, claims), want: 2, gate })
        assert.ok(!more.held)
        assert.deepEqual([more.isGated, more.free], [false, 1])
        assert.ok(claims.some(({ name }) => name === more.holder?.name))
        const last = await two.acquireSome({ claims: again(space, claims), want: 1, gate })
        assert.deepEqual(last.held && held(last.grants), [3])
        assert.deepEqual(await one.inspect({ name: gate }), [], 'the gate is held')
      },

      async 'R14: grants nothing while somebody holds the gate'(space) {
        const [one, two] = await space.pair()
        const { gate, claims } = some(space, 2)
        const guard = space.claim({ name: gate })
        await two.hold(guard)
        const answer = await one.acquireSome({ claims, want: 1, gate })
        assert.ok(!answer.held && answer.isGated)
        for (const { name } of claims) assert.deepEqual(await one.inspect({ name }), [])
        assert.equal(await two.release(guard), 'released')
        const next = await one.acquireSome({ claims, want: 1, gate })
        assert.deepEqual(next.held && held(next.grants), [0])
      },

      async 'R14: what is granted is a lease like any other'(space) {
        const [one, two] = await space.pair()
        const { gate, claims } = some(space, 2)
        const earlier = space.claim({ name: `${gate}/0` })
        const { token } = await two.hold(earlier)
        await two.release(earlier)
        const answer = await one.acquireSome({ claims, want: 2, gate })
        assert.ok(answer.held)
        for (const [index, claim] of claims.entries()) {
          const grant: Grant | undefined = answer.grants[index]
          assert.ok(grant && grant.token > 0n && grant.ttl >= claim.ttl)
          await two.isRefused(space.claim({ name: claim.name }))
          const [record] = await two.inspect({ name: claim.name })
          assert.deepEqual([record?.owner, record?.token], [claim.owner, grant.token])
          assert.equal((await one.renew(claim))?.token, grant.token)
        }
        assert.ok((answer.grants[0]?.token ?? 0n) > token)
        const copy = await one.acquireSome({ claims, want: 2, gate })
        assert.deepEqual(
          copy.held && copy.grants.map(grant => grant?.token),
          answer.grants.map(grant => grant?.token),
        )
        for (const claim of claims) assert.equal(await two.release(claim), 'released')
        await one.hold(space.claim({ name: `${gate}/1` }))
      },

      async 'R14: a lease of a selection that is not renewed ends after its ttl'(space) {
        const [one, two] = await space.pair()
        const { gate, claims } = some(space, 2, { ttl: space.short })
        // So short a ttl leaves little time for the request, and one that is late in a store has to be repeated.
        const acquired = async (): Promise<boolean> => (await one.acquireSome({ claims, want: 2, gate })).held
        await inTime(Number.POSITIVE_INFINITY, () => until('both are held', acquired))
        const next = again(space, claims).map(claim => ({ ...claim, ttl: space.long }))
        await until('both are free', async () => (await two.acquireSome({ claims: next, want: 2, gate })).held)
      },

      async 'R14: refuses claims that were withdrawn before they arrived'(space) {
        await inTime(LONGEST_REQUEST / 5, async () => {
          const [one, two] = await space.pair()
          const { gate, claims } = some(space, 2)
          const began = performance.now()
          for (const claim of claims) assert.equal(await two.release(claim), 'gone')
          const answer = await one.acquireSome({ claims, want: 1, gate })
          if (performance.now() > began + LONGEST_REQUEST) throw new TooSlow('it may have arrived too late')
          assert.ok(!answer.held, 'a withdrawn claim holds')
          for (const { name } of claims) assert.deepEqual(await one.inspect({ name }), [])
        })
      },

      async 'R14: grants each name to one of many selections at once'(space) {
        const clients = await space.pair()
        const { gate, claims } = some(space, 3)
        const asked = Array.from({ length: 20 }, () => again(space, claims))
        const ask = (index: number): ReturnType<Client['acquireSome']> =>
          clients[index % 2 ? 1 : 0].acquireSome({ claims: asked[index] ?? [], want: 1, gate })
        const answers = await Promise.all(asked.map((_, index) => ask(index)))
        const granted = answers.flatMap(answer => (answer.held ? held(answer.grants) : []))
        assert.equal(new Set(granted).size, granted.length, `granted: ${granted}`)
        assert.ok(granted.length >= 1, 'nothing was granted')
      },
    },
  ),
  ...casesOf(
    // Alone: others would keep the server busy beyond the turn of the waiter.
    { needs: ['selection', 'queue'], alone: true },
    {
      async 'R14: overtakes nobody who waits for the gate, or for a name'(space) {
        const [one, two] = await space.pair()
        for (const isGate of [true, false])
          await inTime(TURN / 2, async () => {
            const { gate, claims } = some(space, 1)
            const name = isGate ? gate : `${gate}/0`
            const guard = space.claim({ name })
            await two.hold(guard)
            await two.isRefused(space.claim({ name, queue: true }))
            const free = performance.now()
            await two.release(guard)
            const answer = await one.acquireSome({ claims, want: 1, gate })
            if (performance.now() > free + TURN) throw new TooSlow('the turn of the waiter is over')
            assert.ok(!answer.held, 'it overtook a waiter')
          })
      },
    },
  ),
  ...casesOf(
    { needs: ['selection', 'delay'] },
    {
      async 'R14: a selection that is delivered after its withdrawal is refused'(space) {
        await inTime(LONGEST_REQUEST / 5, async () => {
          const [{ client: one, delay }, two] = await Promise.all([space.delayable(), space.client()])
          const { gate, claims } = some(space, 2, { ttl: 10 * space.long })
          const deliver = await delay()
          const sent = performance.now()
          const answers: unknown[] = []
          const asking = one.acquireSome({ claims, want: 2, gate }).then(
            answer => answers.push(answer.held),
            () => {},
          )
          for (const claim of claims) assert.equal(await two.release(claim), 'gone')
          await deliver()
          await asking
          if (performance.now() > sent + LONGEST_REQUEST) throw new TooSlow('it was delivered too late')
          assert.ok(!answers.includes(true), 'a withdrawn claim holds')
          for (const { name } of claims) assert.deepEqual(await two.inspect({ name }), [])
        })
      },
    },
  ),
]

/** The name of a gate, and claims to names that begin with it. */
function some(space: Space, count: number, parameters: Partial<Claim> = {}): { gate: string; claims: Claim[] } {
  const gate = space.name()
  const of = { owner: 'host:1:abc', ...parameters }
  return { gate, claims: Array.from({ length: count }, (_, slot) => space.claim({ name: `${gate}/${slot}`, ...of })) }
}

/** New claims of another caller to the same names. */
function again(space: Space, claims: readonly Claim[]): Claim[] {
  return claims.map(({ name, ttl }) => space.claim({ name, ttl }))
}

/** The indices of the claims that were granted. */
function held(grants: readonly unknown[]): number[] {
  return grants.flatMap((grant, index) => (grant ? [index] : []))
}
