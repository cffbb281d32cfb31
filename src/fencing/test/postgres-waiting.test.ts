import { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../lab/servers/postgres.ts'
import { until } from '../../../lab/servers/until.ts'
import { failureOf } from '../../../test/support.ts'
import { type PostgresFence, postgresFence } from '../postgres/index.ts'
import { holder, stale } from './support.ts'

let server: PostgresServer
let pool: Pool
let fence: PostgresFence<unknown>

beforeAll(async () => {
  server = await startPostgres()
  pool = new Pool({ connectionString: server.url() })
  fence = postgresFence(pool)
  await fence.install()
})
afterAll(async () => {
  await pool.end()
  await server.stop()
})

/** A transaction that has begun its work, and commits when the test says so. */
async function opened(token: number): Promise<() => Promise<void>> {
  const begun = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const carriedOut = fence.transaction(holder('a', token), async () => {
    begun.resolve()
    await gate.promise
  })
  await begun.promise
  return () => {
    gate.resolve()
    return carriedOut
  }
}

test('transactions that wait while the next holder raises the mark are refused together, without a deadlock', async () => {
  await fence.touch(holder('a', 5))
  const commit = await opened(6)
  const older = [1, 2, 3].map(() => failureOf(fence.transaction(holder('a', 5), async () => {})))
  await until('they wait', async () => {
    return (await server.query("select 1 from pg_stat_activity where wait_event_type = 'Lock'")).length === 3
  })
  await commit()
  expect(await Promise.all(older)).toEqual([stale(5n, 6n), stale(5n, 6n), stale(5n, 6n)])
})

test('an older holder is refused at once, while the newest is at work', async () => {
  await fence.touch(holder('a', 7))
  const commit = await opened(7)
  await expect(fence.touch(holder('a', 6))).rejects.toEqual(stale(6n, 7n))
  await commit()
})
