import { setTimeout as sleep } from 'node:timers/promises'
import { createConnection } from 'mysql2/promise'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type MariaDbServer, startMariaDb } from '../../../../lab/servers/mariadb.ts'
import { until } from '../../../../lab/servers/until.ts'
import { migration } from '../index.ts'
import { claimOf, failureOf, hold, storeAt } from './support.ts'

let server: MariaDbServer

beforeAll(async () => {
  server = await startMariaDb()
})
afterAll(() => server.stop())

/** Another process that creates the table of leases, and holds its lock until `finish`. */
async function creating(table: string): Promise<{ finish(): Promise<unknown> }> {
  await server.query(`drop table if exists ${table}`)
  const [connection, gate] = [await createConnection(server.url()), await createConnection(server.url())]
  onTestFinished(() => gate.destroy())
  await gate.query(`select get_lock('${table}', 30)`)
  const [statement = ''] = migration({ table }).split(';')
  // The row of the query is never stored: the statement only waits.
  const slowly = `${statement} as select * from (select 'a' as name, 'a' as holders, 1 as token, 1 as changed,
    1 as expires, 1 as stamp, get_lock('${table}', 60) as waited) slow where waited > 9`
  const done = connection
    .query(slowly.replace('stamp bigint not null', '$&, waited int'))
    .finally(() => connection.end())
  done.catch(() => {})
  await until('it holds the lock', async () => {
    const running = await server.query(
      "select 1 from information_schema.processlist where info like 'create%get_lock(%'",
    )
    return running.length > 0
  })
  return {
    async finish() {
      await gate.end()
      await done
    },
  }
}

test("a table that another process is creating is waited for, and not taken for another application's", async () => {
  const created = await creating('slowly')
  await using store = storeAt(server.url(), { table: 'slowly', create: true })
  await Promise.all([hold(store, claimOf('a')), sleep(500).then(() => created.finish())])
})

test('a table that stays locked is reported as locked', async () => {
  const created = await creating('locked')
  await using store = storeAt(server.url(), { table: 'locked', create: true })
  const claim = claimOf('a')
  const refusal = await failureOf(Promise.resolve(store.acquire(claim, AbortSignal.timeout(20_000))))
  expect(refusal).toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringMatching(/locked .* table/) })
  await created.finish()
})

test('processes that create the tables at once all succeed', async () => {
  await server.query('drop table if exists at_once, at_once_line')
  const stores = Array.from({ length: 6 }, () => storeAt(server.url(), { table: 'at_once', create: true }))
  await Promise.all(stores.map((store, index) => hold(store, claimOf(`name ${index}`))))
  for (const store of stores) await store[Symbol.asyncDispose]()
})
