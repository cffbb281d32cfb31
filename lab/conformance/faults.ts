import assert from 'node:assert/strict'
import { createLocks, LeaseError, type Locks, subscribe } from '../../src/index.ts'
import { margin, requestLimit } from '../../src/store.ts'
import { type Case, casesOf } from './case.ts'
import type { Client } from './client.ts'
import type { Cure } from './harness.ts'
import type { Space } from './space.ts'
import { inTime, sleep, until } from './timing.ts'
import { Wire } from './wire.ts'

/** The core over this store while its server cannot be reached. */
export const faultCases: Case[] = [
  ...casesOf(
    { needs: ['cut'] },
    {
      async 'notifies a holder that is cut off before another can hold'(space) {
        const ttl = 2 * space.short
        await inTime(margin(ttl) / 2, async () => {
          const { client, cut } = await space.severable()
          const rival = await space.client()
          const { lease, lost } = await holding(space, client, ttl)
          await cut()
          const next = space.claim({ name: lease.name })
          await until('it is passed on', async () => (await rival.acquire(next)).held)
          assert.ok(lost.at < performance.now(), 'another holds, and the signal has not aborted')
          assert.throws(() => lease.assertHeld(), { code: 'LEASE_LOST' })
          inTimeFor(lost, ttl)
        })
      },

      async 'settles a wait, a release and a close while cut off'(space) {
        const ttl = 2 * space.short
        const { client, cut } = await space.severable()
        const other = await space.client()
        const holder = space.claim()
        await other.hold(holder)
        const locks = space.manage(createLocks(client.store, { ttl }))
        const lease = await locks.acquire(space.name())
        const controller = new AbortController()
        const reason = new Error('enough')
        const waiting = locks.acquire(holder.name, { signal: controller.signal })
        const outcome = settled(waiting)
        await until(
          'it waits',
          async () => (await other.inspect({ name: holder.name })).length === 2 || !space.hasQueue,
        )
        await cut()
        controller.abort(reason)
        assert.equal(await soon(outcome), reason)
        assert.match(await lease.release(), /^(unknown|lost)$/)
        await locks.close()
        await until('its position lapses', async () => (await other.inspect({ name: holder.name })).length === 1)
      },

      async 'rejects requests within a ttl while cut off'(space) {
        const { client, cut } = await space.severable()
        const locks = space.manage(createLocks(client.store, { ttl: 2 * space.short }))
        await (await locks.acquire(space.name())).release()
        await cut()
        const name = space.name()
        const calls = [locks.acquire(name), locks.tryAcquire(name), locks.acquire(name, { wait: 50 })]
        const [waiting, trying, short] = (await Promise.all(calls.map(settled))).map(code)
        assert.deepEqual([waiting, trying], ['STORE_UNAVAILABLE', 'STORE_UNAVAILABLE'])
        assert.match(String(short), /^(STORE_UNAVAILABLE|BUSY)$/) // 50 ms without an answer prove nothing
      },

      async 'serves again when the connection is back'(space) {
        const { client, cut } = await space.severable()
        const locks = space.manage(createLocks(client.store, { ttl: 4 * space.short }))
        const name = space.name()
        const lease = await locks.acquire(name)
        const heal = await cut()
        await until('the signal aborts', () => lease.signal.aborted)
        await heal()
        const again = await until('it serves', () => locks.acquire(name).catch(() => undefined))
        assert.ok(again.token > lease.token)
        await again.release()
      },
    },
  ),
  ...(['stop', 'pause'] as const).flatMap(fault => outages(fault)),
  ...casesOf(
    { needs: ['stop'], alone: true },
    {
      async 'R5: raises tokens across a restart of the server, whatever data it lost'(space) {
        const client = await space.client()
        const claim = space.claim({ ttl: space.short })
        const { token } = await client.hold(claim)
        const cure = await space.stop()
        await cure()
        const again = await space.client()
        const next = space.claim({ name: claim.name })
        const later = await until('it is passed on', async () => {
          const answer = await again.acquire(next)
          return answer.held ? answer.token : undefined
        })
        assert.ok(later > token, `${later} after ${token}`)
      },
    },
  ),
  ...casesOf(
    { needs: ['stop'], alone: true },
    {
      async 'R12: a loss is reported by onLoss if the store has it, else by the next renewal'(space) {
        const client = await space.client()
        const [claim, released] = [space.claim({ ttl: 4 * space.short }), space.claim({ ttl: 4 * space.short })]
        const losses: string[] = []
        const onLoss = (key: typeof claim): (() => void) | undefined =>
          client.store.onLoss?.(key, () => losses.push(key.id))
        await client.hold(claim)
        await client.hold(released)
        onLoss(space.claim())?.() // not held, and called off at once
        onLoss(claim)
        const callOff = onLoss(released)
        assert.ok(await client.renew(claim))
        callOff?.()
        await client.release(released)
        assert.deepEqual(losses, [], 'a loss was reported for a lease that is held')
        const cure = await space.stop()
        await cure()
        const again = await space.client()
        await until('it is over', async () => (await again.inspect({ name: claim.name })).length === 0)
        // Without its token: a request from before the stop may grant the lease again on one of several servers, and a
        // renewal with the token may restore it on the others.
        assert.equal(await client.renew({ ...claim, token: undefined }), undefined)
        if (client.store.onLoss) await until('the loss is reported', () => losses.length > 0)
        assert.deepEqual(losses, client.store.onLoss ? [claim.id] : [])
      },
    },
  ),
  ...casesOf(
    { needs: ['pause'], alone: true },
    {
      async 'R3: refuses requests that arrive after their limit, when the server continues'(space) {
        const [one, two] = [await space.client(), await space.client()]
        const locks = space.manage(createLocks(one.store, { ttl: 2 * space.short }))
        await (await locks.acquire(space.name())).release()
        await two.inspect({ name: space.name() })
        const resume = await space.pause()
        const names = [space.name(), space.name(), space.name()]
        const calls = names.map(name => settled(locks.tryAcquire(name)))
        for (const outcome of await Promise.all(calls)) assert.equal(code(outcome), 'STORE_UNAVAILABLE')
        await sleep(requestLimit(2 * space.short)) // a try gives up before the limit of its second request
        await resume()
        await until('the client is served again', () => locks.tryAcquire(space.name()).catch(() => undefined))
        for (const name of names) assert.deepEqual(await two.inspect({ name }), [])
      },
    },
  ),
  ...casesOf(
    { needs: ['jump'], alone: true },
    {
      async "keeps leases that have not expired, and serves, when the server's clock jumps"(space) {
        const locks = await space.locks({ ttl: space.long })
        const lease = await locks.acquire(space.name())
        // A server may end connections after a jump, so a request may have no answer. It is sent again.
        const extend = (ttl: number): Promise<unknown> =>
          until('the lease is extended', () =>
            lease.extend(ttl).catch(error => {
              if (!LeaseError.is(error) || !error.retryable) throw error
            }),
          )
        for (const jump of [space.long / 2, -space.long / 2, -3_600_000, 3_600_000]) {
          if (jump > space.long) await extend(4 * jump) // otherwise it expires by the server's clock
          await space.jump(jump)
          await extend(space.long)
          const other = await locks.acquire(space.name())
          await other.extend()
          await other.release()
          lease.assertHeld()
        }
        await lease.release()
      },
    },
  ),
]

/** What must be true when the server dies, and when it only hangs. */
function outages(fault: 'stop' | 'pause'): Case[] {
  const down = fault === 'stop' ? 'dead' : 'paused'
  return casesOf(
    { needs: [fault], alone: true },
    {
      async [`notifies holders in time while the server is ${down}, and settles release and close`](space) {
        const ttl = 2 * space.short
        await inTime(margin(ttl) / 2, async () => {
          const client = await space.client()
          const { lease, lost, locks } = await holding(space, client, ttl)
          const cure = await space[fault]()
          const extended = await settled(lease.extend())
          assert.match(code(extended), /^(STORE_UNAVAILABLE|OUTCOME_UNKNOWN|LEASE_LOST)$/)
          await until('the signal aborts', () => lost.at < Number.POSITIVE_INFINITY)
          assert.throws(() => lease.assertHeld(), { code: 'LEASE_LOST' })
          assert.equal(await lease.release(), 'lost')
          await locks.close()
          await cure()
          inTimeFor(lost, ttl)
        })
      },

      async [`resolves to the result of work whose lease cannot be released because the server is ${down}`](space) {
        const locks = await space.locks({ ttl: 2 * space.short })
        const name = space.name()
        let failures = 0
        const stop = subscribe('release_failed', event => {
          if (event.name === name) failures += 1
        })
        let cure: Cure | undefined
        const outcome = await locks
          .using(name, async () => {
            cure = await space[fault]()
            return 42
          })
          .catch((error: { code: string; result: unknown }) => {
            assert.equal(error.code, 'LEASE_LOST') // on a slow machine
            return error.result
          })
        assert.equal(outcome, 42)
        await until('the failed release is reported', () => failures > 0)
        assert.equal(failures, 1)
        stop()
        await cure?.()
      },

      async [`waits for a server that is ${down} for less than a ttl`](space) {
        const ttl = 20 * space.short
        // A server that starts for longer than a ttl was dead for longer.
        await inTime(ttl, async () => {
          const locks = await space.locks({ ttl })
          await (await locks.acquire(space.name())).release()
          const cure = await space[fault]()
          const waiting = locks.acquire(space.name())
          const outcome = settled(waiting) // it may reject before the server is back
          await sleep(space.short)
          await cure()
          assert.equal(await outcome, undefined)
          await (await waiting).release()
        })
      },
    },
    // A lease that does not outlive its connection is lost with the server.
    fault === 'stop'
      ? { [`resolves to the result of work whose lease cannot be released because the server is ${down}`]: ['apart'] }
      : {},
  )
}

interface Lost {
  /** By `performance.now()`. `Infinity` until the signal aborts. */
  at: number
  readonly wire: Wire
}

/** A lease that was renewed at least once, and when its signal aborted. */
async function holding(
  space: Space,
  client: Client,
  ttl: number,
): Promise<{ lease: Awaited<ReturnType<Locks['acquire']>>; lost: Lost; locks: Locks }> {
  const wire = new Wire(client.store)
  const locks = space.manage(createLocks(wire, { ttl }))
  const lease = await locks.acquire(space.name())
  const lost: Lost = { at: Number.POSITIVE_INFINITY, wire }
  lease.signal.addEventListener('abort', () => {
    lost.at = performance.now()
  })
  await until('it is renewed', () => wire.answered('renew') > 0)
  return { lease, lost, locks }
}

/** The signal aborted within a ttl of the last good request. */
function inTimeFor({ at, wire }: Lost, ttl: number): void {
  const after = at - wire.lastGood
  assert.ok(after < ttl, `the signal aborted ${after} ms after the last good request left, of ${ttl}`)
}

/** The error of the rejection, if any. */
function settled(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  )
}

/** The result, if it settles within this turn of the event loop. */
function soon(promise: Promise<unknown>): Promise<unknown> {
  const late = new Promise(resolve => setImmediate(() => resolve(new Error('not at once'))))
  return Promise.race([promise, late])
}

function code(error: unknown): string {
  return (error as { code?: string } | undefined)?.code ?? String(error)
}
