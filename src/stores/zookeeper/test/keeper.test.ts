import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../../../../lab/servers/until.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../../../lab/servers/zookeeper.ts'
import { remove } from '../protocol.ts'
import { claimOf, connectionTo, hold, nodesOf, signal, storeOf } from './support.ts'

let server: ZooKeeperServer

beforeAll(async () => {
  server = await startZooKeeper()
})
afterAll(() => server.stop())

test('of 600 waiters, those whose nodes were deleted are woken, and the others are not', async () => {
  await using store = storeOf(server)
  await hold(store, claimOf('many', { ttl: 60_000 }))
  const woken = new Set<number>()
  const waiters = Array.from({ length: 600 }, () => claimOf('many', { queue: true }))
  for (const [index, waiter] of waiters.entries()) {
    await store.acquire(waiter, signal)
    const wake = (delay = 0): unknown => delay === 0 && woken.add(index)
    await store.watch?.(waiter, wake, signal)
  }
  const connection = await connectionTo(server)
  const nodes = await nodesOf(server, 'many')
  for (const index of [10, 599]) {
    const node = nodes.find(each => each.includes(waiters[index]?.id ?? ''))
    await connection.send(remove(`/holdfast/many/${node}`))
  }
  await until('they are woken', () => woken.has(10) && woken.has(599))
  // The deletion also wakes those directly behind.
  expect([...woken].sort((a, b) => a - b)).toEqual([10, 11, 12, 599])
  connection.end(new Error('the test is over'))
})
