import { Client, Pool } from 'pg'
import postgresJs from 'postgres'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startPgBouncer } from '../../../lab/servers/pgbouncer.ts'
import { type PostgresServer, startPostgres } from '../../../lab/servers/postgres.ts'
import { failureOf } from '../../../test/support.ts'
import { type AnyTransaction, postgresFence } from '../postgres/index.ts'
import { holder, stale } from './support.ts'

let server: PostgresServer
let pool: Pool

beforeAll(async () => {
  server = await startPostgres()
  pool = new Pool({ connectionString: server.url() })
  await postgresFence(pool).install()
  await pool.query('create table entry (token bigint not null)')
})
afterAll(async () => {
  await pool.end()
  await server.stop()
})

/** A connection of the caller, and how it sends a statement. */
interface Own {
  readonly connection: AnyTransaction
  query(text: string): Promise<unknown>
}

async function single(url: string): Promise<Own> {
  const client = new Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  return { connection: client, query: text => client.query(text) }
}

const connections: Readonly<Record<string, () => Promise<Own>>> = {
  async 'a client of a Pool'() {
    const client = await pool.connect()
    onTestFinished(() => client.release())
    return { connection: client, query: text => client.query(text) }
  },
  'a Client': () => single(server.url()),
  async 'a Client through pgbouncer'() {
    const pooler = await startPgBouncer(server)
    onTestFinished(() => pooler.stop())
    return single(pooler.url)
  },
  async 'a reserved connection of postgres.js'() {
    const sql = postgresJs(server.url())
    onTestFinished(() => sql.end({ timeout: 1 }))
    const reserved = await sql.reserve()
    onTestFinished(() => reserved.release())
    return { connection: reserved, query: async text => reserved.unsafe(text) }
  },
}

test.each(Object.keys(connections))(
  'a check over %s needs a transaction, and leaves no mark without one',
  async kind => {
    const { connection, query } = await (connections[kind] as (typeof connections)[string])()
    const fence = postgresFence(pool)
    expect(await failureOf(fence.check(holder(kind, 5), connection))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/in no transaction.*begin one first/),
    })
    expect(await fence.marks.list(kind)).toEqual([])
    await query('begin')
    await fence.check(holder(kind, 6), connection)
    await query('insert into entry values (6)')
    await query('commit')
    expect(await fence.marks.list(kind)).toMatchObject([{ token: 6n }])
    await query('begin')
    await expect(fence.check(holder(kind, 5), connection)).rejects.toEqual(stale(5n, 6n))
    await query('rollback')
  },
)

test('a check keeps a savepoint of the caller, whatever its name', async () => {
  const { connection, query } = await single(server.url())
  const fence = postgresFence(pool)
  await query('begin; savepoint holdfast_check')
  await fence.check(holder('kept', 5), connection)
  await query('rollback to savepoint holdfast_check; commit')
  expect(await fence.marks.list('kept')).toEqual([])
})
