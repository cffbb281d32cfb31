import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../../../../lab/servers/until.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../../../lab/servers/zookeeper.ts'
import { createLocks } from '../../../create-locks.ts'
import type { Connection } from '../connection.ts'
import { Disconnected, isRefused } from '../failure.ts'
import { code, getChildren, remove } from '../protocol.ts'
import { claimOf, connectionTo, hold, signal, storeOf } from './support.ts'

let server: ZooKeeperServer

beforeAll(async () => {
  server = await startZooKeeper()
})
afterAll(() => server.stop())

const NOT_EMPTY = -111

/** As `deleteall` of zkCli.sh, for as long as others make nodes meanwhile. */
async function removeAll(connection: Connection, path: string): Promise<void> {
  for (;;) {
    try {
      const { children } = await connection.send(getChildren(path))
      for (const child of children) await removeAll(connection, `${path}/${child}`)
      return await connection.send(remove(path))
    } catch (error) {
      if (isRefused(error, code.noNode)) return
      if (!isRefused(error, NOT_EMPTY)) throw error
    }
  }
}

test('many clients that find the chroot missing create it once, and one of them holds', async () => {
  for (let round = 0; round < 5; round += 1) {
    const chroot = `/missing/${round}/a/b/c`
    const stores = Array.from({ length: 20 }, () => storeOf(server, { chroot }))
    const answers = await Promise.all(stores.map(store => store.acquire(claimOf('a', { queue: true }), signal)))
    expect(answers.filter(({ held }) => held)).toHaveLength(1)
    await Promise.all(stores.map(store => store[Symbol.asyncDispose]()))
  }
})

test('a deleted chroot ends its leases, wakes waiters, and is created again', async () => {
  await using store = storeOf(server, { chroot: '/deleted' })
  await using elsewhere = storeOf(server, { chroot: '/deleted' })
  await using locks = createLocks(store, { ttl: 3_000 })
  await using others = createLocks(elsewhere, { ttl: 3_000 })
  const connection = await connectionTo(server)
  const lease = await locks.acquire('a')
  // One of them may be granted while nodes are still being deleted, and lose that as well.
  const waiting = [locks, others].map(async each => {
    const next = await each.acquire('a')
    await next.release().catch(() => {})
    return next.token
  })
  await until('both wait', async () => (await locks.inspect('a')).waiters.length === 2)
  await removeAll(connection, '/deleted')
  await expect(lease.extend()).rejects.toMatchObject({ code: 'LEASE_LOST' })
  const tokens = await Promise.all(waiting)
  expect(new Set([lease.token, ...tokens]).size).toBe(3)
  expect(Math.min(...tokens.map(Number))).toBeGreaterThan(Number(lease.token))
  connection.end(new Disconnected('over'))
})

test('while a chroot is deleted again and again, calls fail with a message, and only for that long', async () => {
  await using store = storeOf(server, { chroot: '/tooManyChanges' })
  const connection = await connectionTo(server)
  await hold(store, claimOf('first'))
  let isOver = false
  const removing = (async () => {
    for (let rounds = 0; rounds < 30; rounds += 1) await removeAll(connection, '/tooManyChanges')
  })().finally(() => {
    isOver = true
  })
  const asking = (async () => {
    while (!isOver) {
      const claim = claimOf('a')
      const failed = await store
        .acquire(claim, signal)
        .then(() => store.release(claim, signal))
        .then(
          () => undefined,
          error => error, // the chroot may also go between the two calls
        )
      if (failed) expect(failed).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    }
  })()
  await Promise.all([removing, asking])
  await hold(store, claimOf('a'))
  connection.end(new Disconnected('over'))
})
