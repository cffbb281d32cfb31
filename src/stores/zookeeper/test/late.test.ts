/** Requests that are carried out, or answered, after they were given up. */
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { startZooKeeper, type ZooKeeperServer } from '../../../../lab/servers/zookeeper.ts'
import type { Store } from '../../../contract/store.ts'
import { systemClock } from '../../../contract/time.ts'
import { ZooKeeperStore } from '../store.ts'
import { claimOf, failureOf, hold, holdBack, look, nodesOf, settingsWith, signal, transactions } from './support.ts'

let server: ZooKeeperServer

beforeAll(async () => {
  server = await startZooKeeper()
})
afterAll(() => server.stop())
afterEach(() => vi.restoreAllMocks())

/** A store whose clock can be made to step forward. */
function sleeping(): { store: Store; sleep(ms: number): void } {
  const clock = systemClock()
  let slept = 0
  return {
    store: new ZooKeeperStore(settingsWith(server, { ...clock, now: () => clock.now() + slept }), 0),
    sleep(ms) {
      slept += ms
    },
  }
}

/** Another claim of this ttl asks, so its session looks for the nodes of abandoned claims, or deletes them. */
async function sweep(store: Store, ttl: number): Promise<void> {
  const claim = claimOf(`sweep-${ttl}`, { ttl })
  await hold(store, claim)
  for (let turn = 0; turn < 3; turn += 1) await store.renew(claim, signal) // what the sweep asks is answered before
  await store.release(claim, signal)
}

test.each([9_000, 20_000])('a renewal for %i ms whose answer was lost does not end the lease early', async ttl => {
  const { store, sleep } = sleeping()
  const claim = claimOf(`unanswered-${ttl}`)
  const { token } = await hold(store, claim)
  const held = holdBack(transactions, 'lost')
  expect(await failureOf(store.renew({ ...claim, ttl }, signal))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  await (await held)()
  for (const time of [5_100, 2_500]) {
    sleep(time)
    await sweep(store, ttl)
  }
  // If it is not renewed, its holder counts on it until its former end, or the new one if that is sooner.
  expect(await look(store, { name: claim.name })).toMatchObject([{ token }])
  for (const time of [ttl, 2_500, 2_500]) {
    sleep(time)
    await sweep(store, ttl)
  }
  expect(await nodesOf(server, claim.name)).toEqual([])
  await store[Symbol.asyncDispose]()
})

test('a copy of the acquire that was granted shortens no lease that was extended', async () => {
  const { store, sleep } = sleeping()
  const [claim, ttl] = [claimOf('copied', { ttl: 2_000 }), 20_000]
  const { token } = await hold(store, claim)
  await store.renew({ ...claim, ttl }, signal)
  expect(await hold(store, claim)).toMatchObject({ token })
  sleep(10_000)
  await sweep(store, ttl)
  expect(await store.renew({ ...claim, ttl }, signal)).toMatchObject({ token })
  await store[Symbol.asyncDispose]()
})
