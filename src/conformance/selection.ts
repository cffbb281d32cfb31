import assert from 'node:assert/strict'
import type { Claim, Grant, Selection } from '../contract/store.ts'
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
        const selection = { ...some(space, 4), want: 2 }
        const { gate, claims } = selection
        await two.hold(space.claim({ name: `${gate.name}/0` }))
        const answer = await one.acquireSome(selection)
        assert.ok(answer.held)
        assert.deepEqual(held(answer.grants), [1, 2])
        const more = await two.acquireSome(again(space, selection))
        assert.ok(!more.held)
        assert.deepEqual([more.isGated, more.free], [false, 1])
        assert.ok(claims.some(({ name }) => name === more.holder?.name))
        const last = await two.acquireSome({ ...again(space, selection), want: 1 })
        assert.deepEqual(last.held && held(last.grants), [3])
        assert.deepEqual(await one.inspect({ name: gate.name }), [], 'the gate is held')
      },

      async 'R14: grants nothing while somebody holds the gate'(space) {
        const [one, two] = await space.pair()
        const selection = some(space, 2)
        const { gate, claims } = selection
        const guard = space.claim({ name: gate.name })
        await two.hold(guard)
        const answer = await one.acquireSome(selection)
        assert.ok(!answer.held && answer.isGated)
        for (const { name } of claims) assert.deepEqual(await one.inspect({ name }), [])
        assert.equal(await two.release(guard), 'released')
        const next = await one.acquireSome(selection)
        assert.deepEqual(next.held && held(next.grants), [0])
      },

      async 'R14: what is granted is a lease like any other'(space) {
        const [one, two] = await space.pair()
        const selection = { ...some(space, 2), want: 2 }
        const { gate, claims } = selection
        const earlier = space.claim({ name: `${gate.name}/0` })
        const { token } = await two.hold(earlier)
        await two.release(earlier)
        const answer = await one.acquireSome(selection)
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
        const copy = await one.acquireSome(selection)
        assert.deepEqual(
          copy.held && copy.grants.map(grant => grant?.token),
          answer.grants.map(grant => grant?.token),
        )
        for (const claim of claims) assert.equal(await two.release(claim), 'released')
        await one.hold(space.claim({ name: `${gate.name}/1` }))
      },

      async 'R14: a lease of a selection that is not renewed ends after its ttl'(space) {
        const [one, two] = await space.pair()
        const selection = { ...some(space, 2, { ttl: space.short }), want: 2 }
        // So short a ttl leaves little time for the request, and one that is late in a store has to be repeated.
        const acquired = async (): Promise<boolean> => (await one.acquireSome(selection)).held
        await inTime(Number.POSITIVE_INFINITY, () => until('both are held', acquired))
        const next = again(space, selection, { ttl: space.long })
        await until('both are free', async () => (await two.acquireSome(next)).held)
      },

      async 'R14: refuses claims that were withdrawn before they arrived'(space) {
        await inTime(LONGEST_REQUEST / 5, async () => {
          const [one, two] = await space.pair()
          const selection = some(space, 2)
          const { gate, claims } = selection
          const began = performance.now()
          for (const claim of [...claims, gate]) assert.equal(await two.release(claim), 'gone')
          for (const queue of [false, true]) {
            const answer = await one.acquireSome({ ...selection, gate: { ...gate, queue } })
            if (performance.now() > began + LONGEST_REQUEST) throw new TooSlow('it may have arrived too late')
            assert.ok(!answer.held, 'a withdrawn claim holds')
            assert.deepEqual(await one.inspect({ prefix: gate.name }), [])
          }
        })
      },

      async 'R14: grants none of several wanted claims if the last of them was withdrawn'(space) {
        await inTime(LONGEST_REQUEST / 5, async () => {
          const [one, two] = await space.pair()
          const selection = { ...some(space, 2), want: 2 }
          const [, last] = selection.claims
          const began = performance.now()
          assert.equal(last && (await two.release(last)), 'gone')
          const answer = await one.acquireSome(selection)
          if (performance.now() > began + LONGEST_REQUEST) throw new TooSlow('it may have arrived too late')
          assert.ok(!answer.held, 'a withdrawn claim holds')
          assert.deepEqual(await one.inspect({ prefix: selection.gate.name }), [])
        })
      },

      async 'R14: grants each name to one of many selections at once'(space) {
        const clients = await space.pair()
        const selection = some(space, 3)
        const asked = Array.from({ length: 20 }, () => again(space, selection))
        const ask = (index: number): ReturnType<Client['acquireSome']> =>
          clients[index % 2 ? 1 : 0].acquireSome(asked[index] ?? selection)
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
          for (const queue of [false, true])
            await inTime(TURN / 2, async () => {
              const { gate, ...rest } = some(space, 1)
              const name = isGate ? gate.name : `${gate.name}/0`
              const guard = space.claim({ name })
              await two.hold(guard)
              await two.isRefused(space.claim({ name, queue: true }))
              const free = performance.now()
              await two.release(guard)
              const answer = await one.acquireSome({ ...rest, gate: { ...gate, queue } })
              if (performance.now() > free + TURN) throw new TooSlow('the turn of the waiter is over')
              assert.ok(!answer.held, 'it overtook a waiter')
              if (!queue) return
              // With the gate, behind a waiter for the name.
              assert.equal(answer.isGated, isGate)
              assert.ok((answer.wait?.retryAfter ?? 0) >= 10, `it asks again after ${answer.wait?.retryAfter} ms`)
            })
      },
    },
  ),
  ...casesOf(
    { needs: ['selection', 'queue', 'break'] },
    {
      async 'R14: a selection that queues waits for the gate, then with the gate for every name'(space) {
        const [one, two] = await space.pair()
        const { names, selection, guard, holders } = await contended(space, two)
        const { gate } = selection
        const first = await one.acquireSome(selection)
        assert.ok(!first.held && first.isGated && (first.wait?.retryAfter ?? 0) > 0)
        assert.deepEqual(await statesOf(two, [gate.name, ...names]), [['held', 'waiting'], ['held'], ['held']])
        const watch = await one.watch(gate)
        await two.release(guard)
        if (space.harness.lacks?.watch === undefined) await until('it is woken at the gate', () => watch.wakes > 0)
        const second = await one.acquireSome(selection)
        assert.ok(!second.held && !second.isGated, 'it is not past the gate')
        assert.ok((second.wait?.retryAfter ?? 0) > 0 && names.includes(second.holder?.name ?? ''))
        const waiting = [['held'], ['held', 'waiting'], ['held', 'waiting']]
        assert.deepEqual(await statesOf(two, [gate.name, ...names]), waiting)
        await two.isRefused(space.claim({ name: gate.name }))
        const [{ token } = {}] = await two.inspect({ name: gate.name })
        assert.ok(!(await one.acquireSome(selection)).held)
        assert.equal((await two.inspect({ name: gate.name }))[0]?.token, token, 'the gate was acquired anew')
        const { wakes } = watch
        await two.release(holders[1] as Claim)
        if (space.harness.lacks?.watch === undefined) await until('it is woken for a name', () => watch.wakes > wakes)
        const third = await one.acquireSome(selection)
        assert.deepEqual(third.held && held(third.grants), [1])
        assert.deepEqual(await statesOf(two, [gate.name, ...names]), [[], ['held'], ['held']])
        watch.stop()
      },

      async 'R14: a selection that has lost the gate waits for the gate alone'(space) {
        const [one, two] = await space.pair()
        const { names, selection, guard } = await contended(space, two)
        const { gate } = selection
        await two.release(guard)
        const inside = await one.acquireSome(selection)
        assert.ok(!inside.held && !inside.isGated)
        await two.break(gate.name)
        const next = space.claim({ name: gate.name, queue: true })
        await until('another holds the gate', async () => (await two.acquire(next)).held)
        const outside = await one.acquireSome(selection)
        assert.ok(!outside.held && outside.isGated)
        assert.deepEqual(await statesOf(two, [gate.name, ...names]), [['held', 'waiting'], ['held'], ['held']])
      },

      async 'R14: a selection that is granted a name waits for no other, also if it lost the gate'(space) {
        const [one, two] = await space.pair()
        const { names, selection, guard, holders } = await contended(space, two)
        const { gate } = selection
        await two.release(guard)
        const inside = await one.acquireSome(selection)
        assert.ok(!inside.held && !inside.isGated)
        await two.break(gate.name)
        await two.release(holders[1] as Claim)
        const answer = await one.acquireSome(selection)
        assert.deepEqual(answer.held && held(answer.grants), [1])
        assert.deepEqual(await statesOf(two, [gate.name, ...names]), [[], ['held'], ['held']])
      },

      async 'R14: a copy of a granted selection takes and ends nothing, whoever is at the gate'(space) {
        const [one, two] = await space.pair()
        const selection = some(space, 3, { queue: true })
        const { gate, claims } = selection
        const names = claims.map(({ name }) => name)
        const first = space.claim({ name: `${gate.name}/0` })
        await two.hold(first)
        const answer = await one.acquireSome(selection)
        assert.deepEqual(answer.held && held(answer.grants), [1])
        await two.release(first)
        const copy = async (): Promise<void> => {
          const again = await one.acquireSome(selection)
          assert.deepEqual(again.held && again.grants, answer.held && answer.grants)
          assert.deepEqual(await statesOf(two, names), [[], ['held'], []])
        }
        await copy()
        await two.hold(space.claim({ name: gate.name }))
        await copy()
        assert.deepEqual(await statesOf(two, [gate.name]), [['held']])
      },

      async 'R14: a selection that waits is withdrawn by its claims'(space) {
        const [one, two] = await space.pair()
        const { names, selection, guard } = await contended(space, two)
        const { gate, claims } = selection
        await two.release(guard)
        const inside = await one.acquireSome(selection)
        assert.ok(!inside.held && !inside.isGated)
        for (const claim of [...claims, gate]) assert.equal(await one.release(claim), 'released')
        assert.deepEqual(await statesOf(two, [gate.name, ...names]), [[], ['held'], ['held']])
      },

      async 'R14: the gate of a selection that asks no more ends after its ttl'(space) {
        const [one, two] = await space.pair()
        const { selection, guard, names } = await contended(space, two, space.short)
        await two.release(guard)
        const isInside = async (): Promise<boolean> => {
          const answer = await one.acquireSome(selection)
          return !answer.held && !answer.isGated
        }
        await inTime(Number.POSITIVE_INFINITY, () => until('it holds the gate', isInside))
        const next = space.claim({ name: selection.gate.name, queue: true })
        await until('another holds the gate', async () => (await two.acquire(next)).held)
        assert.equal(names.length, 2)
      },
    },
  ),
  ...casesOf(
    { needs: ['selection', 'delay'] },
    {
      async 'R14: a selection that is delivered after its withdrawal is refused'(space) {
        await inTime(LONGEST_REQUEST / 5, async () => {
          const [{ client: one, delay }, two] = await Promise.all([space.delayable(), space.client()])
          const selection = { ...some(space, 2, { ttl: 10 * space.long }), want: 2 }
          const { gate, claims } = selection
          const deliver = await delay()
          const sent = performance.now()
          const answers: unknown[] = []
          const asking = one.acquireSome(selection).then(
            answer => answers.push(answer.held),
            () => {},
          )
          for (const claim of [...claims, gate]) assert.equal(await two.release(claim), 'gone')
          await deliver()
          await asking
          if (performance.now() > sent + LONGEST_REQUEST) throw new TooSlow('it was delivered too late')
          assert.ok(!answers.includes(true), 'a withdrawn claim holds')
          assert.deepEqual(await two.inspect({ prefix: gate.name }), [])
        })
      },
    },
  ),
]

/** Two names that are held, and a selection of one of them that queues, while another holds its gate. */
async function contended(space: Space, other: Client, ttl?: number): Promise<Contended> {
  const selection = some(space, 2, { queue: true, ...(ttl && { ttl }) })
  const names = selection.claims.map(({ name }) => name)
  const guard = space.claim({ name: selection.gate.name })
  const holders = names.map(name => space.claim({ name }))
  for (const claim of [...holders, guard]) await other.hold(claim)
  return { names, selection, guard, holders }
}

interface Contended {
  readonly names: readonly string[]
  readonly selection: Selection
  /** Of the gate. */
  readonly guard: Claim
  /** Of the names. */
  readonly holders: readonly Claim[]
}

/** The states of the holder and the waiters of each name. */
function statesOf(client: Client, names: readonly string[]): Promise<string[][]> {
  return Promise.all(names.map(async name => (await client.inspect({ name })).map(({ state }) => state)))
}

/** A selection of one among names that begin with that of its gate. */
function some(space: Space, count: number, parameters: Partial<Claim> = {}): Selection {
  const gate = space.claim({ owner: 'host:1:abc', ...parameters })
  const claimOf = (_: unknown, slot: number): Claim => ({ ...gate, name: `${gate.name}/${slot}`, queue: false })
  return { gate, claims: Array.from({ length: count }, claimOf), want: 1 }
}

/** The same selection of another caller. */
function again(space: Space, { gate, claims, want }: Selection, parameters: Partial<Claim> = {}): Selection {
  const { id, owner } = space.claim()
  const by = { id, owner, ...parameters }
  return { gate: { ...gate, ...by }, claims: claims.map(claim => ({ ...claim, ...by, queue: false })), want }
}

/** The indices of the claims that were granted. */
function held(grants: readonly unknown[]): number[] {
  return grants.flatMap((grant, index) => (grant ? [index] : []))
}
