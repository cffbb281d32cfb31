import { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { createLocks } from '../../../index.ts'
import { advisory } from '../index.ts'
import { acquire, claimOf, failureOf, hold, look, signal, storeAt } from './support.ts'

const LAST = String(Number.MAX_SAFE_INTEGER)

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.stop())

const usedUp = {
  code: 'STORE_UNAVAILABLE',
  retryable: false,
  message: expect.stringMatching(/has used up its tokens: .* delete the row/),
}

test('L13: a holder whose token cannot rise can be broken, and the name serves again once its row is deleted', async () => {
  await using store = storeAt(server.url())
  const [first, second] = [claimOf('a'), claimOf('a')]
  await hold(store, first)
  await server.query(`update holdfast.lease set token = ${LAST} where name = 'a'`)
  expect(await store.renew(first, signal)).toMatchObject({ held: true })
  expect(await failureOf(store.break('a', { by: 'me' }, signal))).toMatchObject({
    ...usedUp,
    message: expect.stringMatching(/; its lease was ended\. .* delete the row/),
  })
  expect(await store.renew(first, signal)).toBeUndefined()
  expect(await look(store, { name: 'a' })).toEqual([])
  expect(await store.break('a', { by: 'me' }, signal)).toBeUndefined()
  expect(await failureOf(acquire(store, second))).toMatchObject(usedUp)
  await server.query("delete from holdfast.lease where name = 'a'")
  await hold(store, second)
})

test('L13: a call that would wait for a slot without a token left is refused', async () => {
  const locks = createLocks(storeAt(server.url()))
  const semaphore = locks.semaphore('slots', { limit: 1 })
  await (await semaphore.acquire()).release()
  await server.query(`update holdfast.lease set token = ${LAST} where name = 'slots'`)
  expect(await failureOf(semaphore.acquire({ wait: 1_000 }))).toMatchObject(usedUp)
  await locks.close()
})

test('L13: an advisory lock without a token left is refused alone, and released', async () => {
  const pool = new Pool({ connectionString: server.url() })
  {
    await using store = advisory(pool, { create: true })
    const claim = claimOf('b')
    await hold(store, claim)
    await store.release(claim, signal)
    await server.query(`update holdfast.lease_token set token = ${LAST} where name = 'b'`)
    const [refused, ...rest] = await Promise.allSettled(['b', 'c', 'd'].map(name => hold(store, claimOf(name))))
    expect(refused).toMatchObject({ reason: usedUp })
    expect(rest).toMatchObject([{ status: 'fulfilled' }, { status: 'fulfilled' }])
    await server.query("delete from holdfast.lease_token where name = 'b'")
    await hold(store, claimOf('b'))
  }
  await pool.end()
})
