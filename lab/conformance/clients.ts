import assert from 'node:assert/strict'
import { LeaseError } from '../../src/index.ts'
import type { Claim, Store } from '../../src/store.ts'
import { type Case, casesOf } from './case.ts'
import { inTime, within } from './timing.ts'

/** Concurrent requests, requests that were given up, and closing a client. */
export const clientCases: Case[] = [
  ...casesOf(
    {},
    {
      async 'declares its kind and its guarantees'(space) {
        const { store } = await space.client()
        const { lacks = {} } = space.harness
        assert.ok(store.kind.length > 0)
        const { order, waiting, sharing, minTtl, maxUnattended, scope } = store.guarantees
        assert.equal(order === 'not promised', lacks.queue !== undefined, 'lacks.queue and guarantees.order disagree')
        // A store that polls may do so for all waiters of a process, and wake them.
        assert.ok(waiting === 'polled' || !lacks.watch, 'lacks.watch and guarantees.waiting disagree')
        assert.equal(store.watch === undefined, lacks.watch !== undefined, 'lacks.watch and watch() disagree')
        assert.equal(sharing === 'slots', lacks.slots === undefined, 'lacks.slots and guarantees.sharing disagree')
        assert.equal(scope === 'process', lacks.close !== undefined, 'lacks.close and guarantees.scope disagree')
        assert.ok(maxUnattended === 0 || !lacks.apart, 'lacks.apart and maxUnattended disagree')
        assert.ok(minTtl <= space.short, `the shortest ttl is ${minTtl}: give the harness a larger scale`)
      },

      async 'R13: does not send a request that was given up, and rejects with the reason'(space) {
        const client = await space.client()
        await inTime(space.long, async () => {
          const [free, held] = [space.claim(), space.claim()]
          const { token } = await client.hold(held)
          const reason = new Error('given up')
          for (const claim of [free, { ...held, token, ttl: 10 * space.long, note: 'given up' }])
            for (const [verb, ask] of requests(client.store, claim, AbortSignal.abort(reason)))
              await rejects(verb, ask, error => error === reason)
          assert.deepEqual(await client.inspect({ prefix: free.name }), [])
          await client.hold(free) // a tombstone would refuse it
          const [record, ...others] = await client.inspect({ prefix: held.name })
          assert.deepEqual([record?.token, record?.note, others], [token, '', []])
          assert.ok(record && record.remaining <= 2 * space.long, 'it was extended')
        })
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
        for (const [verb, ask] of requests(store, claim, new AbortController().signal))
          await rejects(verb, ask, error => LeaseError.is(error, 'CLOSED'))
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

/** One request of each kind that the store has, by its verb. */
function requests(store: Store, claim: Claim, signal: AbortSignal): [verb: string, ask: () => Promise<unknown>][] {
  const { watch } = store
  const all: Record<string, (() => Promise<unknown>) | undefined> = {
    acquire: () => store.acquire(claim, signal),
    renew: () => store.renew(claim, signal),
    annotate: () => store.annotate(claim, signal),
    async inspect() {
      for await (const record of store.inspect({ name: claim.name }, signal)) assert.fail(`it shows ${record.name}`)
    },
    watch: watch && !signal.aborted ? () => watch.call(store, claim, () => {}, signal) : undefined,
    // Last, because they would hide the effects of the others.
    release: () => store.release(claim, signal),
    break: () => store.break(claim.name, { by: 'test' }, signal),
  }
  return Object.entries(all).flatMap(([verb, ask]) => (ask ? [[verb, ask]] : []))
}

async function rejects(
  verb: string,
  ask: () => Promise<unknown>,
  isExpected: (error: unknown) => boolean,
): Promise<void> {
  const check = (error: unknown): boolean => isExpected(error) || assert.fail(`${verb} rejects with: ${error}`)
  await assert.rejects(within(`a rejection of ${verb}`, ask), check, verb)
}
