import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../../../../lab/servers/until.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../../../lab/servers/zookeeper.ts'
import { type Clock, systemClock } from '../../../contract/time.ts'
import { createLocks } from '../../../index.ts'
import { Group } from '../group.ts'
import { Paths } from '../paths.ts'
import type { Settings } from '../place.ts'
import { ZooKeeperStore } from '../store.ts'
import { claimOf, hold, signal, storeOf } from './support.ts'

let server: ZooKeeperServer

beforeAll(async () => {
  server = await startZooKeeper()
})
afterAll(() => server.stop())

function settingsWith(clock: Clock): Settings {
  return {
    ensemble: { servers: [server], tls: undefined, auth: undefined },
    paths: new Paths('', 'holdfast'),
    acl: { permissions: 31, scheme: 'world', id: 'anyone' },
    clock,
  }
}

test('a lease that ends by a step of the wall clock is reported before another can hold the name', async () => {
  const real = systemClock()
  let slept = 0
  const store = new ZooKeeperStore(settingsWith({ ...real, now: () => real.now() + slept }), 0)
  await using locks = createLocks(storeOf(server), { ttl: 2_000 })
  const claim = claimOf('stepped', { ttl: 2_000 })
  await hold(store, claim)
  let isTold = false
  store.onLoss(claim, () => {
    isTold = true
  })
  const next = locks.using('stepped', async () => isTold)
  await hold(store, claimOf('other', { ttl: 2_000 }))
  expect(isTold).toBe(false)
  slept = 3_000
  await hold(store, claimOf('another', { ttl: 2_000 }))
  expect(await next).toBe(true)
  await store[Symbol.asyncDispose]()
})

test('a lease is reported as lost as soon as any request finds that its session is over', async () => {
  await using server = await startZooKeeper()
  await using store = storeOf(server)
  const claim = claimOf('ended', { ttl: 2_000 })
  await hold(store, claim)
  const lost = new Promise<void>(resolve => store.onLoss?.(claim, resolve))
  await server.kill()
  rmSync(join(server.folder, 'data', 'version-2'), { recursive: true })
  await server.start()
  const other = claimOf('other', { ttl: 2_000 })
  await until('another is granted', () => store.acquire(other, signal).catch(() => undefined))
  await lost
})

test('when a node is deleted, only current waiters are woken', async () => {
  await using others = storeOf(server)
  const holder = claimOf('held')
  await hold(others, holder)
  const told: string[] = []
  const group = new Group(settingsWith(systemClock()), 10_000, { wake: id => told.push(id), lose: () => {} })
  const connection = await group.connection(0)
  const claims = [claimOf('held'), claimOf('held')] as const
  const [gone, waits] = claims
  for (const claim of claims) {
    const { place, queue } = await group.put(connection, claim, 'w')
    if (queue.holder) expect(await group.arm(connection, 'held', queue.holder.name, claim.id, 0)).toBe(true)
    if (claim === gone) group.forget(place)
  }
  await others.release(holder, signal)
  await until('they are told', () => told.length > 0)
  expect(told).toEqual([waits.id])
  await group.close()
})
