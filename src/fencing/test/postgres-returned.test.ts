import { Pool } from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../lab/servers/postgres.ts'
import { failureOf } from '../../../test/support.ts'
import { postgresFence } from '../postgres/index.ts'
import { holder } from './support.ts'

let server: PostgresServer
let pool: Pool

beforeAll(async () => {
  server = await startPostgres()
  pool = new Pool({ connectionString: server.url() })
  await postgresFence(pool).install()
  await pool.query('create table entry (line text)')
})
beforeEach(() => pool.query('truncate entry'))
afterAll(async () => {
  await pool.end()
  await server.stop()
})

const insert = (line: string): string => `insert into entry values ('${line}')`

async function lines(): Promise<string[]> {
  const { rows } = await pool.query<{ line: string }>('select line from entry order by line')
  return rows.map(({ line }) => line)
}

/** A pool with one client, which its last user returned after this statement in a transaction. */
async function returnedAfter(statement: string, isAwaited: boolean): Promise<Pool> {
  const own = new Pool({ connectionString: server.url(), max: 1 })
  onTestFinished(() => own.end())
  const client = await own.connect()
  await client.query('begin')
  await client.query(insert('of its last user'))
  const sent = client.query(statement).catch(() => {})
  if (isAwaited) await sent
  client.release()
  return own
}

describe.each<[string, (own: Pool) => Promise<unknown>, string[]]>([
  [
    'a transaction',
    own => postgresFence(own).transaction(holder('a', 5), client => client.query(insert('of the fence'))),
    ['of the fence'],
  ],
  ['touch', own => postgresFence(own).touch(holder('a', 5)), []],
])('over a client that its last user returned to the pool, %s', (_, use, written) => {
  test.each([
    ['is open', 'select 1'],
    ['has failed', 'select 1 / 0'],
  ])('does not go on with a transaction that %s', async (_state, statement) => {
    const own = await returnedAfter(statement, true)
    expect(await failureOf(use(own))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/returned to the pool in a transaction.*before release/),
    })
    expect(own.totalCount).toBe(0)
    await use(own)
    expect(await lines()).toEqual(written)
  })

  test('waits for a commit that was not answered yet', async () => {
    const own = await returnedAfter('commit', false)
    await use(own)
    expect(await lines()).toEqual([...written, 'of its last user'].sort())
  })
})
