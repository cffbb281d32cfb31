import assert from 'node:assert/strict'
import { LeaseError } from '../../src/index.ts'
import { type Case, casesOf } from './case.ts'
import type { Client } from './client.ts'
import type { Space } from './space.ts'
import { EARLY, eachOf, inTime, STATE_LIMIT, sleep, TooSlow, until } from './timing.ts'

/** Renewal, expiry and break. */
export const renewalCases: Case[] = casesOf(
  {},
  {
    async 'R5: renews a lease with the same token'(space) {
      const client = await space.client()
      const claim = space.claim()
      const { token } = await client.hold(claim)
      for (let turn = 0; turn < 3; turn += 1) {
        const grant = await client.renew(claim)
        assert.equal(grant?.token, token)
        assert.ok(grant.ttl >= claim.ttl)
      }
    },

    async 'R6: renews for a longer and for a shorter ttl'(space) {
      const client = await space.client()
      const claim = space.claim({ ttl: space.long })
      await client.hold(claim)
      const remaining = async (): Promise<number> => (await client.inspect({ name: claim.name }))[0]?.remaining ?? 0
      await client.renew({ ...claim, ttl: 100 * space.long })
      assert.ok((await remaining()) > 50 * space.long, 'longer')
      const { ttl } = (await client.renew({ ...claim, ttl: 2 * space.long })) ?? { ttl: 0 }
      assert.ok(ttl >= 2 * space.long && (await remaining()) <= ttl, 'shorter')
    },

    async 'R6: renews no claim that is unknown, waiting or released'(space) {
      const client = await space.client()
      const claim = space.claim()
      assert.equal(await client.renew(claim), undefined)
      assert.deepEqual(await client.inspect({ name: claim.name }), [])
      const held = space.claim()
      await client.hold(held)
      const waiting = space.claim({ name: held.name, queue: true })
      await client.isRefused(waiting)
      assert.equal(await client.renew(waiting), undefined)
      await client.release(waiting)
      await client.release(held)
      assert.equal(await client.renew(held), undefined)
      assert.deepEqual(await client.inspect({ name: held.name }), [])
    },

    async 'R6: never reports a held lease as gone, whatever requests run concurrently'(space) {
      const clients = await space.pair()
      const claim = space.claim()
      const { token } = await clients[0].hold(claim)
      const asked = Array.from({ length: 10 }, async (_, index) => {
        const client = clients[index % 2 ? 1 : 0]
        const waiting = space.claim({ name: claim.name, queue: true })
        const [renewed, annotated] = await Promise.all([
          answer(() => client.renew(claim)),
          answer(() => client.annotate({ ...claim, note: `${index}` })),
          answer(() => client.isRefused(waiting)),
        ])
        return [renewed?.token, annotated]
      })
      for (const answers of await Promise.all(asked)) assert.deepEqual(answers, [token, true])
    },

    async 'R6: passes an expired lease on, not before its end and soon after, with a higher token'(space) {
      await inTime(space.short, async () => {
        const [one, two] = await space.pair()
        const claim = space.claim({ ttl: space.short })
        const sent = performance.now()
        const { token, ttl } = await one.hold(claim)
        const next = await taken(space, two, claim.name)
        const after = next.at - sent
        assert.ok(after >= ttl - EARLY, `it was passed on after ${after} ms of ${ttl} that were granted`)
        assert.ok(next.token > token, `${next.token} after ${token}`)
        if (after > ttl + space.latest) throw new TooSlow(`it was passed on after ${after} ms`)
      })
    },

    async 'R6: counts the ttl from the last renewal or acquire of the claim'(space) {
      const [one, two] = await space.pair()
      for (const again of ['renew', 'acquire'] as const) {
        await inTime(space.short / 2, async () => {
          const ttl = 2 * space.short
          const claim = space.claim({ ttl })
          const first = performance.now()
          await one.hold(claim)
          await new Promise(resolve => setTimeout(resolve, ttl / 3))
          const sent = performance.now()
          const granted = await one[again](claim)
          if (performance.now() > first + ttl) throw new TooSlow('the renewal took a whole ttl')
          const least = granted?.held ? granted.ttl : assert.fail('a holder was refused its lease')
          const { at } = await taken(space, two, claim.name)
          assert.ok(at >= sent + least - EARLY, `it was passed on ${at - sent} ms after ${again}, of ${least}`)
        })
      }
    },

    async 'R6: neither a renewal nor a release revives an expired lease'(space) {
      const client = await space.client()
      const claim = space.claim({ ttl: space.short })
      await client.hold(claim)
      // A minority of a quorum that voted later still has its votes, and a renewal may restore the others.
      const over = performance.now() + 2 * space.short
      const isFree = async (): Promise<boolean> => (await client.inspect({ name: claim.name })).length === 0
      await until('the lease runs out', async () => performance.now() > over && (await isFree()))
      assert.equal(await client.renew(claim), undefined)
      assert.deepEqual(await client.inspect({ name: claim.name }), [])
      assert.equal(await client.release(claim), 'gone')
    },

    async 'R6: neither a renewal nor a release takes the name from its next holder'(space) {
      const [one, two] = await space.pair()
      const claim = space.claim({ ttl: space.short })
      await one.hold(claim)
      const { next, token } = await taken(space, two, claim.name)
      assert.equal(await one.renew(claim), undefined)
      assert.equal(await one.release(claim), 'gone')
      assert.equal((await two.renew(next))?.token, token)
    },

    async 'R5: a claim that asks again after its lease expired gets a new lease with a higher token'(space) {
      const [one, two] = await space.pair()
      const claim = space.claim({ ttl: space.short })
      const { token } = await one.hold(claim)
      const { next, token: between } = await taken(space, two, claim.name)
      await two.release(next)
      const again = await one.hold({ ...claim, ttl: space.long })
      assert.ok(token < between && between < again.token, `${token}, ${between}, ${again.token}`)
    },

    async 'R10: a break frees the name and outranks the old holder'(space) {
      const [one, two] = await space.pair()
      const claim = space.claim()
      const { token } = await one.hold(claim)
      const broken = await two.break(claim.name)
      assert.ok(broken !== undefined && broken > token, `${broken} after ${token}`)
      assert.equal(await one.renew(claim), undefined)
      assert.equal(await one.release(claim), 'gone')
      const next = await two.hold(space.claim({ name: claim.name }))
      assert.ok(next.token > broken, `${next.token} after ${broken}`)
    },

    async 'R10: a break of a free name changes nothing'(space) {
      const client = await space.client()
      assert.equal(await client.break(space.name()), undefined)
      const claim = space.claim()
      await client.hold(claim)
      await client.release(claim)
      assert.equal(await client.break(claim.name), undefined)
    },

    async 'R10: a break with a token ends only the lease that has it'(space) {
      const [one, two] = await space.pair()
      const claim = space.claim()
      const before = await one.hold(claim)
      await one.release(claim)
      assert.equal(await two.break(claim.name, before.token), undefined)
      const next = space.claim({ name: claim.name })
      const { token } = await one.hold(next)
      for (const other of [before.token, token - 1n, token + 1n])
        assert.equal(await two.break(claim.name, other), undefined)
      assert.equal((await one.renew(next))?.token, token)
      const broken = await two.break(claim.name, token)
      assert.ok(broken !== undefined && broken > token, `${broken} after ${token}`)
      assert.equal(await one.renew(next), undefined)
      assert.equal(await two.break(claim.name, token), undefined)
    },

    async 'R10: a break affects no other name'(space) {
      const client = await space.client()
      const claim = space.claim()
      const other = space.claim({ name: `${claim.name}/b` })
      await client.hold(claim)
      await client.hold(other)
      await client.break(claim.name)
      assert.ok(await client.renew(other))
    },
  },
  {
    'R6: never reports a held lease as gone, whatever requests run concurrently': ['apart'],
    'R10: a break frees the name and outranks the old holder': ['break'],
    'R10: a break of a free name changes nothing': ['break'],
    'R10: a break with a token ends only the lease that has it': ['break'],
    'R10: a break affects no other name': ['break'],
  },
)

/** The final answer of a request. A conflict with another request may reject, and is then retried for 30 s. */
async function answer<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  const end = performance.now() + STATE_LIMIT
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!LeaseError.is(error) || !error.retryable || performance.now() > end) throw error
      await sleep(5) // a store that rejects at once must not block the process
    }
  }
}

/** Tokens, over everything that happens to a name. */
export const tokenCases: Case[] = casesOf(
  {},
  {
    async 'R5: raises the token at each grant, through any client'(space) {
      const clients = await space.pair()
      const name = space.name()
      let last = 0n
      for (let turn = 0; turn < 20; turn += 1) {
        const client = clients[turn % 2 ? 1 : 0]
        const claim = space.claim({ name })
        const { token } = await client.hold(claim)
        assert.ok(token > last, `${token} after ${last}`)
        last = token
        if (turn % 5 === 4 && space.canBreak) last = (await client.break(name)) ?? assert.fail('nobody held')
        else await client.release(claim)
      }
    },

    async 'R5: raises the tokens of many names that are acquired and released'(space) {
      const client = await space.client()
      const prefix = space.name()
      const names = Array.from({ length: 300 }, (_, index) => `${prefix}/${index}`)
      const round = (): Promise<bigint[]> =>
        eachOf(names, async name => {
          const claim = space.claim({ name })
          const { token } = await client.hold(claim)
          await client.release(claim)
          return token
        })
      const [first, second] = [await round(), await round()]
      for (const [index, token] of second.entries()) assert.ok(token > (first[index] ?? token), names[index])
    },

    async 'R5: shows the same token to every client'(space) {
      const [one, two] = await space.pair()
      const claim = space.claim()
      const { token } = await one.hold(claim)
      const [record] = await two.inspect({ name: claim.name })
      const { holder } = await two.isRefused(space.claim({ name: claim.name }))
      assert.deepEqual([record?.token, holder?.token], [token, token])
    },
  },
)

/** Tokens against the clock of the server. */
export const clockCases: Case[] = casesOf(
  { needs: ['jump'], alone: true },
  {
    async "R5: tokens rise, and a lease keeps its token, while the server's clock is set back by an hour"(space) {
      const client = await space.client()
      let claim = space.claim()
      let last = (await client.hold(claim)).token
      for (const jump of [-3_600_000, -3_600_000, 3_600_000, 3_600_000]) {
        await space.jump(jump)
        // With its token, as the core asks: a server that was late for the grant may have another one.
        const held = { ...claim, token: last }
        if (jump < 0) assert.equal((await client.renew(held))?.token, last)
        if (jump < 0) assert.equal((await client.hold(held)).token, last)
        for (let grants = 0; grants < 3; grants += 1) {
          await client.release(claim)
          claim = space.claim({ name: claim.name })
          const { token } = await client.hold(claim)
          assert.ok(token > last, `${token} after ${last}, when the clock had been set by ${jump} ms`)
          last = token
        }
      }
    },

    async "R10: a break outranks the holder after the server's clock was set back by an hour"(space) {
      const client = await space.client()
      const claim = space.claim()
      const { token } = await client.hold(claim)
      await space.jump(-3_600_000)
      const broken = (await client.break(claim.name)) ?? assert.fail('nobody held')
      assert.ok(broken > token, `${broken} after ${token}`)
      const next = await client.hold(space.claim({ name: claim.name }))
      assert.ok(next.token > broken, `${next.token} after ${broken}`)
      await space.jump(3_600_000)
    },
  },
  {
    "R10: a break outranks the holder after the server's clock was set back by an hour": ['break'],
  },
)

/** Asks until it holds the name. Returns when the answer came. */
async function taken(
  space: Space,
  client: Client,
  name: string,
): Promise<{ next: ReturnType<Space['claim']>; token: bigint; at: number }> {
  const next = space.claim({ name })
  const token = await until(`${name} is passed on`, async () => {
    const answer = await client.acquire(next)
    return answer.held ? answer.token : undefined
  })
  return { next, token, at: performance.now() }
}
