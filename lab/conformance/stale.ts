import assert from 'node:assert/strict'
import { type Claim, type Grant, LONGEST_REQUEST, requestLimit } from '../../src/store.ts'
import { type Case, casesOf } from './case.ts'
import type { Client } from './client.ts'
import type { Cure } from './harness.ts'
import type { Space } from './space.ts'
import { inTime, sleep, TooSlow, until } from './timing.ts'

/** Requests that arrive after newer ones of the same claim and after their own limit. */
export const staleCases: Case[] = [
  ...casesOf(
    // Another client sends the newer requests, because everything that the first one sends is held back.
    { needs: ['delay', 'apart'] },
    {
      'R3: a stale renewal never shortens a lease that was extended since': held(
        async ({ space, one, two, delay, claim, token }) => {
          const deliver = await delay()
          await givenUp(one, 'renew', claim, async () => {
            const extended = await two.renew({ ...claim, ttl: 10 * space.long })
            if (!extended) throw new TooSlow('the lease ran out before it was extended')
          })
          await deliver()
          await always(space, async () => {
            const [record] = await two.inspect({ name: claim.name })
            assert.equal(record?.token, token)
            assert.ok(record.remaining > 5 * space.long, `the stale renewal left ${record.remaining} ms`)
          })
          assert.equal((await two.renew(claim))?.token, token)
        },
      ),

      'R3: a stale renewal revives no lease that was seen to end': held(async ({ space, one, two, delay, claim }) => {
        const deliver = await delay()
        await givenUp(one, 'renew', claim)
        await until('the lease runs out', async () => (await two.inspect({ name: claim.name })).length === 0)
        await deliver()
        await always(space, async () => assert.deepEqual(await two.inspect({ name: claim.name }), []))
      }),

      'R3: a stale renewal never touches the next lease': held(async ({ space, one, two, delay, claim, token }) => {
        const deliver = await delay()
        await givenUp(one, 'renew', claim)
        const next = space.claim({ name: claim.name })
        await until('the lease runs out', async () => (await two.acquire(next)).held)
        await deliver()
        await always(space, async () => {
          const [record] = await two.inspect({ name: next.name })
          assert.ok(record?.token && record.token > token && record.owner === next.owner)
        })
        assert.ok(await two.renew(next))
      }),

      'R3: a stale note never replaces a newer one': held(async ({ space, one, two, delay, claim }) => {
        const deliver = await delay()
        await givenUp(one, 'annotate', { ...claim, note: 'stale' }, async () => {
          const extended = await two.renew({ ...claim, ttl: space.long })
          if (!extended) throw new TooSlow('the lease ran out before it was extended')
        })
        assert.ok(await two.annotate({ ...claim, note: 'newer' }))
        await deliver()
        await always(space, async () => assert.equal((await two.inspect({ name: claim.name }))[0]?.note, 'newer'))
      }),

      'R3: a stale acquire ends no lease, and leaves nothing permanent': held(
        async ({ space, one, two, delay, claim: { ttl } }) => {
          const free = space.claim({ ttl, queue: true })
          const holder = space.claim()
          await two.hold(holder)
          const waiter = space.claim({ name: holder.name, ttl, queue: true })
          const deliver = await delay()
          await Promise.all([free, waiter].map(claim => givenUp(one, 'acquire', claim)))
          await deliver()
          await always(space, async () => {
            const [record] = await two.inspect({ name: holder.name })
            assert.equal(record?.owner, holder.owner)
          })
          await until('no lease is left', async () => (await two.inspect({ name: free.name })).length === 0)
          await until('no waiter is left', async () => (await two.inspect({ name: holder.name })).length === 1)
        },
      ),

      'R4: an acquire that is delivered after its withdrawal is refused': held(async ({ space, one, two, delay }) => {
        // Longer than this case runs.
        const claims = [false, true].map(queue => space.claim({ queue, ttl: 10 * space.long }))
        const deliver = await delay()
        const sent = performance.now()
        const grants = claims.map(claim => underWay(one, claim))
        for (const claim of claims) assert.equal(await two.release(claim), 'gone')
        await deliver()
        if (performance.now() > sent + LONGEST_REQUEST) throw new TooSlow('it was delivered too late')
        for (const { name } of claims) await leavesNothing(space, two, name)
        assert.deepEqual(grants.flat(), [])
      }),

      'R4: a copy of an acquire that is delivered after the release of its lease is refused': held(
        async ({ space, one, two, delay }) => {
          const claim = space.claim({ ttl: 10 * space.long })
          const deliver = await delay()
          const sent = performance.now()
          const grants = underWay(one, claim)
          await two.hold(claim)
          assert.equal(await two.release(claim), 'released')
          assert.equal(await two.release(claim), 'gone')
          await deliver()
          if (performance.now() > sent + LONGEST_REQUEST) throw new TooSlow('it was delivered too late')
          await leavesNothing(space, two, claim.name)
          assert.deepEqual(grants, [])
        },
      ),

      'R10: a stale break takes the name from no later holder': held(async ({ space, one, two, delay, claim }) => {
        const deliver = await delay()
        await givenUp(one, 'break', claim)
        await two.release(claim)
        const next = space.claim({ name: claim.name })
        const { token } = await two.hold(next)
        await deliver()
        await always(space, async () => assert.equal((await two.inspect({ name: next.name }))[0]?.token, token))
        assert.ok(await two.renew(next))
      }),
    },
    {
      'R3: a stale renewal revives no lease that was seen to end': ['final'],
      'R10: a stale break takes the name from no later holder': ['break'],
    },
  ),
  ...casesOf(
    {},
    {
      async 'R4: a withdrawn claim is refused for as long as its acquire can be in flight'(space) {
        await inTime(LONGEST_REQUEST / 20, async () => {
          const client = await space.client()
          const claim = space.claim()
          const sent = performance.now()
          assert.equal(await client.release(claim), 'gone')
          await sleep(0.9 * LONGEST_REQUEST)
          const answer = await client.acquire(claim)
          if (performance.now() > sent + LONGEST_REQUEST) throw new TooSlow('it may have been asked too late')
          assert.equal(answer.held, false, 'a withdrawn claim holds')
        })
      },
    },
  ),
]

/** A claim that holds for a short ttl. */
interface Held {
  readonly space: Space
  /** The client that acquired it, whose requests can be held back. */
  readonly one: Client
  /** Another one. */
  readonly two: Client
  readonly delay: () => Promise<Cure>
  readonly claim: Claim
  readonly token: bigint
}

function held(body: (held: Held) => Promise<void>): Case['run'] {
  return space =>
    inTime(space.short / 2, async nth => {
      const [{ client: one, delay }, two] = await Promise.all([space.delayable(), space.client()])
      const claim = space.claim({ ttl: (3 + nth) * space.short })
      const { token } = await one.hold(claim)
      if (!(await one.renew(claim))) throw new TooSlow('the lease ran out')
      await body({ space, one, two, delay, claim, token })
    })
}

/** Asks for a name and returns the grant. A refusal may be a rejection. */
function underWay({ store }: Client, claim: Claim): Grant[] {
  const grants: Grant[] = []
  store.acquire(claim, new AbortController().signal).then(
    answer => answer.held && grants.push(answer),
    () => {},
  )
  return grants
}

/** Sends a request that is given up at its limit, while `meanwhile` runs. Resolves after both. */
async function givenUp(
  { store }: Client,
  verb: 'acquire' | 'renew' | 'annotate' | 'break',
  claim: Claim,
  meanwhile: () => Promise<void> = async () => {},
): Promise<void> {
  const ttl = verb === 'break' ? Number.POSITIVE_INFINITY : claim.ttl
  const limit = requestLimit(ttl, verb === 'acquire' ? store.guarantees.acquireShare : undefined)
  const sent = performance.now()
  const controller = new AbortController()
  const { signal } = controller
  const stale = verb === 'break' ? store.break(claim.name, { by: 'test' }, signal) : store[verb](claim, signal)
  const answer = stale.then(
    () => assert.fail('the harness did not hold the request back'),
    () => {},
  )
  const outcome = Promise.race([answer, sleep(limit)]).finally(() => controller.abort())
  await Promise.all([outcome, meanwhile()])
  // It may have failed sooner, and the server's clock may count whole milliseconds.
  await sleep(Math.max(sent + 1.1 * limit - performance.now(), 0))
}

/** Checks for a while, because nothing shows when the stale request arrives. */
async function always(space: Space, look: () => Promise<void>): Promise<void> {
  const end = performance.now() + space.short
  for (let looks = 0; looks < 10 || performance.now() < end; looks += 1) {
    await look()
    await sleep(10)
  }
}

/** A stale request may briefly leave something, which its client deletes. */
async function leavesNothing(space: Space, client: Client, name: string): Promise<void> {
  await sleep(space.short)
  await until('nothing is left', async () => (await client.inspect({ name })).length === 0, LONGEST_REQUEST)
}
