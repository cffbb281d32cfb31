import { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../lab/servers/postgres.ts'
import { until } from '../../../lab/servers/until.ts'
import { failureOf } from '../../../test/support.ts'
import { postgresFence } from '../postgres/index.ts'
import { holder, stale } from './support.ts'

let server: PostgresServer
let pool: Pool

beforeAll(async () => {
  server = await startPostgres()
  pool = new Pool({ connectionString: server.url() })
  await postgresFence(pool).install()
  await postgresFence(pool).touch(holder('overlapping', 5))
})
afterAll(async () => {
  await pool.end()
  await server.stop()
})

/** A transaction that stays open until the test ends it. */
async function open(name: string, token: number): Promise<() => Promise<void>> {
  const begun = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const ended = postgresFence(pool).transaction(holder(name, token), () => {
    begun.resolve()
    return gate.promise
  })
  await Promise.race([begun.promise, ended])
  return () => {
    gate.resolve()
    return ended
  }
}

async function waiting(count: number): Promise<void> {
  await until('they wait', async () => {
    const found = await server.query("select 1 from pg_stat_activity where wait_event_type = 'Lock'")
    return found.length === count
  })
}

test('overlapping transactions of an older holder do not keep a newer one out', async () => {
  const end = await open('overlapping', 5)
  const newer = postgresFence(pool).touch(holder('overlapping', 6))
  await waiting(1)
  const next = failureOf(open('overlapping', 5))
  await waiting(2)
  await end()
  await newer
  expect(await next).toEqual(stale(5n, 6n))
})

test('an older holder is refused at once, also while a newer one is in a transaction', async () => {
  await postgresFence(pool).touch(holder('busy', 6))
  const end = await open('busy', 6)
  await expect(postgresFence(pool).touch(holder('busy', 5))).rejects.toEqual(stale(5n, 6n))
  await end()
})
