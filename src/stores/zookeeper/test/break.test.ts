import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { startZooKeeper, type ZooKeeperServer } from '../../../../lab/servers/zookeeper.ts'
import { Connection } from '../connection.ts'
import { claimOf, hold, signal, storeOf } from './support.ts'

let server: ZooKeeperServer

beforeAll(async () => {
  server = await startZooKeeper()
})
afterAll(() => server.stop())

/** Runs `action` before each request of this operation. */
function before(op: number, action: () => unknown): void {
  const { send } = Connection.prototype
  const spy = vi.spyOn(Connection.prototype, 'send').mockImplementation(async function (this: Connection, request) {
    if (request.op === op) await action()
    return send.call(this, request)
  })
  onTestFinished(() => spy.mockRestore())
}

test('a break that is given up ends no lease, however late it knows who holds', async () => {
  await using store = storeOf(server)
  const claim = claimOf('late')
  await hold(store, claim)
  const givenUp = new AbortController()
  const reason = new Error('enough')
  before(12, () => givenUp.abort(reason)) // it reads who holds
  await expect(store.break('late', { by: 'test' }, givenUp.signal)).rejects.toBe(reason)
  expect(await store.renew(claim, signal)).toBeDefined()
})

test('a break whose holder releases meanwhile looks again', async () => {
  await using store = storeOf(server)
  await using other = storeOf(server)
  const [first, second] = [claimOf('changes'), claimOf('changes')]
  await hold(store, first)
  let transactions = 0
  before(14, async () => {
    transactions += 1
    if (transactions !== 2) return // the first is the barrier of its read
    await store.release(first, signal)
    await hold(store, second)
  })
  expect(await other.break('changes', { by: 'test' }, signal)).toBeTypeOf('bigint')
  expect(await store.renew(second, signal)).toBeUndefined()
})
