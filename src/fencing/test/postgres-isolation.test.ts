import { Pool } from 'pg'
import { expect, test } from 'vitest'
import { startPostgres } from '../../../lab/servers/postgres.ts'
import { until } from '../../../lab/servers/until.ts'
import { postgresFence } from '../postgres/index.ts'
import { holder } from './support.ts'

test.each(['read committed', 'repeatable read'])(
  'at the level %s a holder sees all that those before it wrote, above the lowest once it has touched',
  async level => {
    const server = await startPostgres()
    const options = `-c default_transaction_isolation=${level.replace(' ', '\\ ')}`
    const pool = new Pool({ connectionString: server.url(), options })
    const fence = postgresFence(pool)
    await fence.install()
    await pool.query('create table entry (token bigint not null)')
    await fence.touch(holder('a', 5))
    const gate = Promise.withResolvers<void>()
    const written = Promise.withResolvers<void>()
    const older = fence.transaction(holder('a', 5), async client => {
      await client.query('insert into entry values (5)')
      written.resolve()
      await gate.promise
    })
    await written.promise
    const touched = level === 'read committed' ? undefined : fence.touch(holder('a', 6))
    const look = async (): Promise<number | null> =>
      fence.transaction(holder('a', 6), async client => (await client.query('select from entry')).rowCount)
    const seen = touched ? touched.then(look) : look()
    await until('it waits', async () => {
      return (await server.query("select 1 from pg_stat_activity where wait_event_type = 'Lock'")).length > 0
    })
    gate.resolve()
    await older
    expect(await seen).toBe(1)
    await pool.end()
    await server.stop()
  },
)
