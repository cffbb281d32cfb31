import assert from 'node:assert/strict'
import { type Claim, type Grant, LARGEST_LIMIT, type LeaseRecord, MOST_UNITS } from '../../src/store.ts'
import { type Case, casesOf } from './case.ts'
import type { Client } from './client.ts'
import type { Space } from './space.ts'
import { EARLY, inTime, TooSlow, until } from './timing.ts'

/** Names that several claims hold, each with slots of its own. */
export const slotCases: Case[] = [
  ...casesOf(
    { needs: ['slots'] },
    {
      async 'R1: several claims hold a name under its limit, each with the lowest free slot'(space) {
        const [one, two] = await space.pair()
        const { permit } = shared(space, 3)
        const [first, second] = [permit(), permit()]
        assert.deepEqual(slotsOf(await one.hold(first)), [0])
        assert.deepEqual(slotsOf(await two.hold(second)), [1])
        assert.deepEqual(slotsOf(await one.hold(permit())), [2])
        await two.isRefused(permit())
        for (const claim of [second, first]) assert.equal(await two.release(claim), 'released')
        assert.deepEqual(slotsOf(await one.hold(permit())), [0])
        assert.deepEqual(slotsOf(await two.hold(permit())), [1])
        await one.isRefused(permit())
      },

      async 'R1: a claim for several units gets as many slots, or none'(space) {
        const [one, two] = await space.pair()
        const { name, permit } = shared(space, 5)
        const first = permit({ units: 2 })
        assert.deepEqual(slotsOf(await one.hold(first)), [0, 1])
        assert.deepEqual(slotsOf(await two.hold(permit())), [2])
        await two.isRefused(permit({ units: 3 }))
        assert.equal((await one.inspect({ name })).length, 2)
        await one.release(first)
        assert.deepEqual(slotsOf(await two.hold(permit({ units: 3 }))), [0, 1, 3])
      },

      async 'R1: the smallest limit in use counts'(space) {
        const [one, two] = await space.pair()
        const { permit } = shared(space, 3)
        const small = permit({ limit: 2 })
        await one.hold(permit())
        assert.deepEqual(slotsOf(await two.hold(small)), [1])
        await one.isRefused(permit())
        await two.release(small)
        assert.deepEqual(slotsOf(await one.hold(permit())), [1])
      },

      async 'R1: a claim does not hold while a slot at or above its limit is in use'(space) {
        const client = await space.client()
        const { permit } = shared(space, 3)
        const claims = [permit(), permit(), permit()]
        for (const claim of claims) await client.hold(claim)
        for (const claim of claims.slice(0, 2)) await client.release(claim)
        await client.isRefused(permit({ limit: 2 }))
        assert.deepEqual(slotsOf(await client.hold(permit())), [0])
      },

      async 'R1: a claim of limit 1 holds alone, without permits and readers'(space) {
        const [one, two] = await space.pair()
        for (const limit of [2, LARGEST_LIMIT]) {
          const { permit } = shared(space, limit)
          const [lock, reader] = [permit({ limit: undefined }), permit()]
          await one.hold(lock)
          await two.isRefused(reader)
          assert.equal(await one.release(lock), 'released')
          await two.hold(reader)
          await one.isRefused(lock)
          await two.release(reader)
          assert.deepEqual(slotsOf(await one.hold(lock)), [0])
        }
      },

      async 'R1: accepts the largest limit, and the most units'(space) {
        const [one, two] = await space.pair()
        const { permit } = shared(space, LARGEST_LIMIT)
        const { slots } = await one.hold(permit({ units: MOST_UNITS }))
        assert.deepEqual(
          slots,
          Array.from({ length: MOST_UNITS }, (_, slot) => slot),
        )
        for (const slot of [0, 1, 2]) assert.deepEqual(slotsOf(await two.hold(permit())), [MOST_UNITS + slot])
      },

      async 'R1: a claim that asks again keeps its slots and its limit, also if the copy states others'(space) {
        const [one, two] = await space.pair()
        const { name, permit } = shared(space, 3)
        const [gap, claim] = [permit(), permit({ units: 2 })]
        await one.hold(gap)
        const { token } = await one.hold(claim)
        await one.release(gap)
        for (const copy of [claim, { ...claim, limit: 9, units: 1 }, { ...claim, limit: 2, units: 2 }]) {
          const again = await two.hold(copy)
          assert.deepEqual([again.token, slotsOf(again)], [token, [1, 2]])
        }
        assert.deepEqual((await one.inspect({ name })).map(shown), [['held', 3, [1, 2]]])
        await one.hold(permit({ limit: 9 }))
        await one.isRefused(permit({ limit: 9 }))
      },

      async 'R3: a stale copy of the acquire never shortens a lease of a shared name'(space) {
        const client = await space.client()
        const { name, permit } = shared(space, 2)
        const claim = permit()
        await client.hold(claim)
        await client.hold(permit({ ttl: 10 * space.long }))
        await client.renew({ ...claim, ttl: 10 * space.long })
        await client.hold(claim)
        for (const { remaining } of await client.inspect({ name }))
          assert.ok(remaining > space.long, `${remaining} ms remain`)
      },

      async 'R4: a withdrawn claim is refused while a slot is free, and no slot of others is freed'(space) {
        const [one, two] = await space.pair()
        const { name, permit } = shared(space, 2)
        const { token } = await one.hold(permit())
        for (const queue of [false, true]) {
          const late = permit({ queue })
          assert.equal(await one.release(late), 'gone')
          await two.isRefused(late)
        }
        assert.deepEqual(
          (await two.inspect({ name })).map(record => record.token),
          [token],
        )
      },

      async 'R5: tokens rise over all grants of a name, in whichever slot'(space) {
        const clients = await space.pair()
        const { permit } = shared(space, 3)
        const holders: Claim[] = []
        let last = 0n
        for (let turn = 0; turn < 9; turn += 1) {
          const next = permit()
          const { token } = await clients[turn % 2 ? 1 : 0].hold(next)
          assert.ok(token > last, `${token} after ${last}`)
          last = token
          holders.push(next)
          const [leaver] = holders.length === 3 ? holders.splice(turn % 3, 1) : []
          if (leaver) await clients[0].release(leaver)
        }
      },

      async 'R6: grants the slot of a holder that stopped renewing after its ttl, with a higher token'(space) {
        await inTime(space.short, async () => {
          const [one, two] = await space.pair()
          const { permit } = shared(space, 2)
          const [dead, alive] = [permit({ ttl: space.short }), permit()]
          const sent = performance.now()
          const { ttl } = await one.hold(dead)
          const { token } = await one.hold(alive)
          if (performance.now() >= sent + ttl) throw new TooSlow('the second took the slot of the first')
          const next = await until(
            'the slot is granted again',
            async () => {
              const answer = await two.acquire(permit())
              return answer.held ? answer : undefined
            },
            5 * space.short + space.latest,
          )
          const after = performance.now() - sent
          assert.ok(after >= ttl - EARLY, `it was granted after ${after} ms of ${ttl}`)
          assert.deepEqual(slotsOf(next), [0])
          assert.ok(next.token > token, `${next.token} after ${token}`)
          assert.equal(await one.renew(dead), undefined)
          const renewed = await one.renew(alive)
          assert.deepEqual(renewed && [renewed.token, slotsOf(renewed)], [token, [1]])
          if (after > ttl + space.latest) throw new TooSlow(`it was granted after ${after} ms`)
        })
      },

      async 'R6: a renewal or a release is that of one claim, and not of other holders'(space) {
        const [one, two] = await space.pair()
        const { name, permit } = shared(space, 3)
        const [renewed, released] = [permit(), permit()]
        for (const claim of [permit(), renewed, released]) await one.hold(claim)
        assert.deepEqual(slotsOf((await two.renew({ ...renewed, ttl: 10 * space.long })) ?? assert.fail('gone')), [1])
        assert.equal(await two.release(released), 'released')
        const records = await two.inspect({ name })
        assert.deepEqual(
          records.map(({ slots = [0], remaining }) => [slots, remaining > 5 * space.long]),
          [
            [[0], false],
            [[1], true],
          ],
        )
      },

      async 'R7: a note is that of one claim, and not of other holders'(space) {
        const [one, two] = await space.pair()
        const { name, permit } = shared(space, 2)
        const second = permit({ note: 'first' })
        for (const claim of [permit({ note: 'first' }), second]) await one.hold(claim)
        assert.ok(await two.annotate({ ...second, note: 'second' }))
        assert.deepEqual(
          (await two.inspect({ name })).map(({ note }) => note),
          ['first', 'second'],
        )
      },

      async 'R11: shows each holder with its slots and its limit, in the order of their slots'(space) {
        const [one, two] = await space.pair()
        const { name, permit } = shared(space, 9)
        const gap = permit()
        for (const claim of [gap, permit({ limit: 8, units: 2 }), permit({ limit: LARGEST_LIMIT })])
          await one.hold(claim)
        await one.release(gap)
        const last = permit({ limit: 7 })
        const { token } = await one.hold(last)
        const records = await two.inspect({ name })
        assert.deepEqual(records.map(shown), [
          ['held', 7, [0]],
          ['held', 8, [1, 2]],
          ['held', LARGEST_LIMIT, [3]],
        ])
        assert.deepEqual([records[0]?.token, records[0]?.owner], [token, last.owner])
        assert.deepEqual((await two.inspect({ prefix: name })).map(shown), records.map(shown))
        const { holder } = await two.isRefused(permit({ limit: undefined }))
        assert.ok(records.some(record => record.token === holder?.token))
      },
    },
  ),
  ...casesOf(
    { needs: ['slots', 'break'] },
    {
      async 'R10: a break ends the leases of all holders, and outranks them'(space) {
        const { one, two, name, permit, claims, tokens } = await heldByTwo(space)
        const broken = (await two.break(name)) ?? assert.fail('nobody held')
        for (const token of tokens) assert.ok(broken > token, `${broken} after ${token}`)
        for (const claim of claims) assert.equal(await one.renew(claim), undefined)
        assert.deepEqual(await two.inspect({ name }), [])
        const next = await one.hold(permit())
        assert.ok(next.token > broken, `${next.token} after ${broken}`)
        assert.deepEqual(slotsOf(next), [0])
      },

      async 'R10: a break with a slot ends only the lease that has it'(space) {
        const { one, two, name, claims, tokens } = await heldByTwo(space)
        const [first, second] = claims
        assert.equal(await two.break(name, undefined, 7), undefined)
        const broken = (await two.break(name, undefined, 1)) ?? assert.fail('nobody held the slot')
        for (const token of tokens) assert.ok(broken > token, `${broken} after ${token}`)
        assert.equal(await one.renew(first), undefined)
        assert.equal((await one.renew(second))?.token, tokens[1])
        assert.equal(await two.break(name, undefined, 1), undefined)
        assert.deepEqual((await two.inspect({ name })).map(shown), [['held', 4, [2]]])
      },

      async 'R10: a break with a token ends no other holder'(space) {
        const { one, two, name, claims, tokens } = await heldByTwo(space)
        const [first, second] = claims
        const broken = (await two.break(name, tokens[1])) ?? assert.fail('nobody held by the token')
        for (const token of tokens) assert.ok(broken > token, `${broken} after ${token}`)
        assert.equal(await one.renew(second), undefined)
        assert.equal((await one.renew(first))?.token, tokens[0])
        assert.equal(await two.break(name, tokens[1]), undefined)
      },
    },
  ),
  // Many requests at once keep the process busy.
  ...casesOf(
    { needs: ['slots'], alone: true },
    {
      async 'R1: concurrent claims through two clients never share a slot'(space) {
        const clients = await space.pair()
        const { name, permit } = shared(space, 5)
        for (let round = 0; round < 3; round += 1) {
          const claims = Array.from({ length: 20 }, () => permit())
          const answers = await Promise.all(claims.map((claim, index) => clients[index % 2 ? 1 : 0].acquire(claim)))
          const slots = answers.flatMap(answer => (answer.held ? slotsOf(answer) : []))
          assert.deepEqual(new Set(slots), new Set([0, 1, 2, 3, 4]))
          assert.equal(slots.length, 5)
          const tokens = answers.flatMap(answer => (answer.held ? [answer.token] : []))
          assert.equal(new Set(tokens).size, 5, `tokens: ${tokens}`)
          assert.equal((await clients[0].inspect({ name })).length, 5)
          await Promise.all(claims.map((claim, index) => clients[index % 2 ? 1 : 0].release(claim)))
        }
      },
    },
  ),
]

/** A name, and claims to it that have this limit unless they say otherwise. */
export function shared(
  space: Space,
  limit: number,
): { readonly name: string; readonly permit: (parameters?: Partial<Claim>) => Claim } {
  const name = space.name()
  return { name, permit: parameters => space.claim({ name, limit, ...parameters }) }
}

/** A name that two claims hold, through one of two clients: the first has slots 0 and 1, the second has slot 2. */
async function heldByTwo(space: Space): Promise<{
  readonly one: Client
  readonly two: Client
  readonly name: string
  readonly permit: () => Claim
  readonly claims: readonly [Claim, Claim]
  readonly tokens: readonly [bigint, bigint]
}> {
  const [one, two] = await space.pair()
  const { name, permit } = shared(space, 4)
  const claims = [permit({ units: 2 }), permit()] as const
  const [first, second] = [await one.hold(claims[0]), await one.hold(claims[1])]
  return { one, two, name, permit, claims, tokens: [first.token, second.token] }
}

export function slotsOf({ slots = [0] }: Grant): readonly number[] {
  return slots
}

/** What is left out of a record stands for 1, or for slot 0. */
export function shown({ state, limit = 1, slots = [0], units = 1 }: LeaseRecord): unknown[] {
  return [state, limit, state === 'held' ? slots : units]
}
