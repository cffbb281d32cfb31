import assert from 'node:assert/strict'
import type { Claim, Store } from '../contract/store.ts'
import { type Case, casesOf } from './case.ts'
import { within } from './timing.ts'

/** Concurrent requests, requests that were given up, and closing a client. */
export const clientCases: Case[] = [
  ...casesOf(
    {},
    {
      async 'declares its kind and its guarantees'(space) {
        const { store } = await space.client()
        const { lacks = {} } = space.harness
        assert.ok(store.kind.length > 0)
        const { order, waiting, shortestTtl, longestUnattended, scope } = store.guarantees
        assert.equal(order === 'not promised', lacks.queue !== undefined, 'lacks.queue and guarantees.order disagree')
        assert.equal(waiting === 'polled', lacks.watch !== undefined, 'lacks.watch and guarantees.waiting disagree')
        assert.equal(store.watch === undefined, lacks.watch !== undefined, 'lacks.watch and watch() disagree')
        const hasSelection = store.acquireSome !== undefined
        assert.equal(!hasSelection, lacks.selection !== undefined, 'lacks.selection and acquireSome() disagree')
        assert.equal(scope === 'process', lacks.close !== undefined, 'lacks.close and guarantees.scope disagree')
        const endsWithClient = longestUnattended === 0
        assert.equal(endsWithClient, lacks.apart !== undefined, 'lacks.apart and longestUnattended disagree')
        assert.ok(shortestTtl <= space.short, `the shortest ttl is ${shortestTtl}: give the harness a larger scale`)
      },

      async 'R13: does not send a request that was given up, and rejects with the reason'(space) {
        const client = await space.client()
        const claim = space.claim()
        const reason = new Error('given up')
        for (const ask of requests(client.store, claim, AbortSignal.abort(reason)))
          await assert.rejects(within('a rejection', ask), error => error === reason)
        assert.deepEqual(await client.inspect({ name: claim.name }), [])
        await client.hold(claim) // a tombstone would refuse it
      },

      async 'R13: answers the other requests of a round trip if one was given up'(space) {
        const { store } = await space.client()
        const prefix = space.name()
        const answers = await within('all answers', signal =>
          Promise.allSettled(
            Array.from({ length: 50 }, (_, index) =>
              store.acquire(space.claim({ name: `${prefix}/${index}` }), index % 5 ? signal : AbortSignal.abort()),
            ),
          ),
        )
        for (const [index, { status }] of answers.entries())
          assert.equal(status, index % 5 ? 'fulfilled' : 'rejected', `request ${index}`)
      },

      async 'R13: answers different concurrent requests correctly'(space) {
        const client = await space.client()
        const [held, free, never] = [space.claim(), space.claim(), space.claim()]
        await client.hold(held)
        const answers = await Promise.all([
          client.acquire(space.claim({ name: held.name })),
          client.acquire(free),
          client.renew(held),
          client.renew(never),
          client.release(never),
          space.canBreak ? client.break(space.name()) : undefined,
          client.inspect({ name: held.name }),
        ])
        const [busy, grant, renewed, unknown, gone, broken, records] = answers
        assert.deepEqual([busy.held, grant.held, renewed?.held], [false, true, true])
        assert.deepEqual([unknown, gone, broken, records.length], [undefined, 'gone', undefined, 1])
      },
    },
  ),
  ...casesOf(
    { needs: ['close'] },
    {
      async 'R13: rejects CLOSED after it was closed, and may be closed twice'(space) {
        const { store } = await space.client()
        const claim = space.claim()
        await within('an answer', signal => store.acquire(claim, signal))
        await store[Symbol.asyncDispose]()
        await store[Symbol.asyncDispose]()
        for (const ask of requests(store, claim, new AbortController().signal))
          await assert.rejects(within('a rejection', ask), { code: 'CLOSED' })
      },

      async 'R13: rejects CLOSED even if it was never used'(space) {
        const store = await space.harness.open()
        await store[Symbol.asyncDispose]()
        await assert.rejects(
          within('a rejection', signal => store.acquire(space.claim(), signal)),
          { code: 'CLOSED' },
        )
      },

      async 'R13: closing one client ends no other client and no lease'(space) {
        const [one, two] = await space.pair()
        const [claim, other] = [space.claim(), space.claim()]
        await one.hold(claim)
        await two.hold(other)
        await one.store[Symbol.asyncDispose]()
        assert.ok(await two.renew(other))
        assert.ok(await two.renew(claim))
      },
    },
    {
      'R13: closing one client ends no other client and no lease': ['apart'],
    },
  ),
]

/** One request of each kind. */
function requests(store: Store, claim: Claim, signal: AbortSignal): (() => Promise<unknown>)[] {
  const { watch } = store
  return [
    () => store.acquire(claim, signal),
    () => store.renew(claim, signal),
    () => store.release(claim, signal),
    () => store.break(claim.name, 'test', signal),
    async () => {
      for await (const record of store.inspect({ name: claim.name }, signal)) assert.fail(`it shows ${record.name}`)
    },
    ...(watch && !signal.aborted ? [() => watch.call(store, claim, () => {}, signal)] : []),
  ]
}
