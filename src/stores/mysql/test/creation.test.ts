import { createConnection } from 'mysql2/promise'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type MariaDbServer, startMariaDb } from '../../../../lab/servers/mariadb.ts'
import { until } from '../../../../lab/servers/until.ts'
import { migration } from '../index.ts'
import { claimOf, failureOf, hold, storeAt } from './support.ts'

let server: MariaDbServer

beforeAll(async () => {
  server = await startMariaDb()
})
afterAll(() => server.stop())

/** Another process that creates the table of leases, and holds its lock for so many seconds. */
async function creating(table: string, seconds: number): Promise<{ readonly done: Promise<unknown> }> {
  const connection = await createConnection(server.url())
  const [statement = ''] = migration({ table }).split(';')
  // The row of the query is never stored: the statement only takes time.
  const slowly = `${statement} as select * from (select 'a' as name, 'a' as holders, 1 as token, 1 as changed,
    1 as expires, 1 as stamp, sleep(${seconds}) as slept) slow where slept > 9`
  const done = connection
    .query(slowly.replace('stamp bigint not null', '$&, slept int'))
    .finally(() => connection.end())
  done.catch(() => {})
  await until('it holds the lock', async () => {
    const running = await server.query("select 1 from information_schema.processlist where info like 'create%sleep(%'")
    return running.length > 0
  })
  return { done }
}

test("a table that another process is creating is waited for, and not taken for another application's", async () => {
  const created = await creating('slowly', 1)
  await using store = storeAt(server.url(), { table: 'slowly', create: true })
  await hold(store, claimOf('a'))
  await created.done
})

test('a table that stays locked is reported as locked', async () => {
  const created = await creating('locked', 6)
  await using store = storeAt(server.url(), { table: 'locked', create: true })
  const claim = claimOf('a')
  const refusal = await failureOf(Promise.resolve(store.acquire(claim, AbortSignal.timeout(20_000))))
  expect(refusal).toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringMatching(/locked .* table/) })
  await created.done
})

test('processes that create the tables at once all succeed', async () => {
  const stores = Array.from({ length: 6 }, () => storeAt(server.url(), { table: 'at_once', create: true }))
  await Promise.all(stores.map((store, index) => hold(store, claimOf(`name ${index}`))))
  for (const store of stores) await store[Symbol.asyncDispose]()
})
