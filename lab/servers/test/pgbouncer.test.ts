import { Client } from 'pg'
import { expect, test } from 'vitest'
import { poolerGenerations, startPgBouncer } from '../pgbouncer.ts'
import { startPostgres } from '../postgres.ts'

test.each(poolerGenerations())('a pooler (%s) is the one that was asked for', async generation => {
  await using server = await startPostgres()
  await using pooler = await startPgBouncer(server, { generation })
  const client = new Client({ connectionString: pooler.url.replace(/postgres$/, 'pgbouncer') })
  await client.connect()
  const { rows } = await client.query<{ version: string }>('show version')
  await client.end()
  expect(rows[0]?.version).toMatch(generation === 'newest' ? /^PgBouncer 1\.24\./ : /^PgBouncer \d/)
})
