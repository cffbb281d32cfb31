import { Client, Pool } from 'pg'
import postgresJs from 'postgres'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../lab/servers/postgres.ts'
import { until } from '../../../lab/servers/until.ts'
import { failureOf } from '../../../test/support.ts'
import { postgresFence } from '../postgres/index.ts'
import { holder } from './support.ts'

// Transactions that end before their work: by the work itself, or with their session.

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

/** One connection, which is opened again after it has ended. */
function single(): ReturnType<typeof postgresJs> {
  const sql = postgresJs(server.url(), { max: 1, backoff: () => 0, onnotice: () => {} })
  onTestFinished(() => sql.end({ timeout: 1 }))
  return sql
}

interface Transaction {
  query(text: string): Promise<unknown>
}

type Work = (transaction: Transaction) => Promise<unknown>

const drivers: Record<string, (work: Work) => Promise<unknown>> = {
  async 'a Pool'(work) {
    return postgresFence(pool).transaction(holder('ended', 5), work)
  },
  async 'a Client'(work) {
    const client = new Client({ connectionString: server.url() })
    await client.connect()
    return postgresFence(client)
      .transaction(holder('ended', 5), work)
      .finally(() => client.end())
  },
  async 'postgres.js'(work) {
    return postgresFence(single()).transaction(holder('ended', 5), transaction =>
      work({ query: async text => transaction.unsafe(text) }),
    )
  },
}

describe.each(Object.entries(drivers))('a transaction of %s', (_, transaction) => {
  test.each<[how: string, statements: string[], written: string[]]>([
    ['commits', ['commit'], ['after', 'before']],
    ['rolls back', ['rollback'], ['after']],
    ['has a transaction of its own', ['begin', 'commit'], ['after', 'before']],
    // The rest is in a transaction that the fence still can roll back.
    ['begins another', ['commit', 'begin'], ['before']],
  ])('whose work %s itself is reported', async (_how, statements, written) => {
    const ended = transaction(async client => {
      await client.query(insert('before'))
      for (const statement of statements) await client.query(statement)
      await client.query(insert('after'))
    })
    expect(await failureOf(ended)).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/was committed or rolled back before its work ended.*not guarded/),
    })
    expect(await lines()).toEqual(written)
  })

  test('whose work uses savepoints is committed', async () => {
    await transaction(async client => {
      await client.query('savepoint own')
      await client.query(insert('undone'))
      await client.query('rollback to savepoint own')
      await client.query(insert('kept'))
    })
    expect(await lines()).toEqual(['kept'])
  })
})

test('PostgreSQL rolls back after an ignored error, and this is reported', async () => {
  const swallowing = postgresFence(pool).transaction(holder('swallowing', 5), async client => {
    await client.query(insert('lost'))
    await client.query('select 1 / 0').catch(() => {})
  })
  expect(await failureOf(swallowing)).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/PostgreSQL rolled back/),
  })
  expect(await lines()).toEqual([])
})

test('a statement that fails while nobody waits for it is reported by postgres.js too', async () => {
  const failing = postgresFence(single()).transaction(holder('unawaited', 5), async transaction => {
    await transaction.unsafe(insert('lost'))
    void transaction.unsafe('select 1 / 0').execute()
  })
  expect(await failureOf(failing)).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/PostgreSQL rolled back/),
  })
  expect(await lines()).toEqual([])
})

describe('a transaction of postgres.js whose session ends', () => {
  type Scope = postgresJs.TransactionSql

  /** Ends the session in the work, and lets it continue once the connection is open again. */
  async function ended(
    sql: ReturnType<typeof postgresJs>,
    onward: (transaction: Scope) => Promise<unknown>,
    reopened: () => Promise<unknown> = () => sql`select 1`,
  ): Promise<{ error: Error; after: PromiseSettledResult<unknown> }> {
    const gate = Promise.withResolvers<void>()
    const pid = Promise.withResolvers<number>()
    const finished = Promise.withResolvers<PromiseSettledResult<unknown>>()
    const outcome = failureOf(
      postgresFence(sql).transaction(holder('session', 5), async transaction => {
        const [row] = await transaction<{ pid: number }[]>`select pg_backend_pid() as pid`
        await transaction.unsafe(insert('before'))
        pid.resolve(row?.pid ?? 0)
        await gate.promise
        const [result] = await Promise.allSettled([onward(transaction)])
        finished.resolve(result)
        if (result.status === 'rejected') throw result.reason
      }),
    )
    await server.query(`select pg_terminate_backend(${await pid.promise})`)
    const error = await outcome
    await reopened()
    gate.resolve()
    return { error, after: await finished.promise }
  }

  const refused = {
    status: 'rejected',
    reason: expect.objectContaining({ code: 'STORE_UNAVAILABLE', message: expect.stringMatching(/was not sent/) }),
  }

  test.each<[string, (transaction: Scope) => Promise<unknown>]>([
    ['a statement', async transaction => transaction`insert into entry values ('after')`],
    ['a text', async transaction => transaction.unsafe(insert('after'))],
    ['a savepoint', async transaction => transaction.savepoint(async inner => inner.unsafe(insert('after')))],
  ])('sends nothing more, not even %s', async (_, onward) => {
    const sql = single()
    const { error, after } = await ended(sql, onward)
    expect(error).toMatchObject({ code: 'CONNECTION_CLOSED' })
    expect(after).toEqual(refused)
    await sql`select 1` // what is sent before this has arrived now
    expect(await lines()).toEqual([])
  })

  test('sends the statements of an array, and ends when a file is missing', async () => {
    const fence = postgresFence(single())
    await fence.transaction(holder('array', 5), async transaction => {
      await transaction.savepoint(inner => ['one', 'two'].map(line => inner.unsafe(insert(line))))
    })
    expect(await lines()).toEqual(['one', 'two'])
    const failed = fence.transaction(
      holder('array', 6),
      async transaction => void (await transaction.file('missing.sql')),
    )
    expect(await failureOf(failed)).toMatchObject({ code: 'ENOENT' })
    await fence.touch(holder('array', 7))
  })

  test('sends no statement that was made before, and none of an open savepoint', async () => {
    const sql = single()
    const made = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    const pid = Promise.withResolvers<number>()
    const results = Promise.withResolvers<PromiseSettledResult<unknown>[]>()
    const outcome = failureOf(
      postgresFence(sql).transaction(holder('made', 5), async transaction => {
        const [row] = await transaction<{ pid: number }[]>`select pg_backend_pid() as pid`
        const early = transaction.unsafe(insert('early'))
        const point = transaction.savepoint(async inner => {
          made.resolve()
          pid.resolve(row?.pid ?? 0)
          await gate.promise
          await inner.unsafe(insert('inner'))
        })
        const ending = Promise.allSettled([point])
        await gate.promise
        results.resolve([...(await ending), ...(await Promise.allSettled([early]))])
      }),
    )
    await made.promise
    await server.query(`select pg_terminate_backend(${await pid.promise})`)
    await outcome
    await sql`select 1`
    gate.resolve()
    expect(await results.promise).toEqual([refused, refused])
    await sql`select 1`
    expect(await lines()).toEqual([])
  })

  test.each([
    ['fails', async (transaction: Scope) => transaction.unsafe(insert('after'))],
    ['ends well', async () => {}],
  ])('does not end the transaction of others on that connection when its work %s', async (_, onward) => {
    const sql = single()
    const begun = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    let other: Promise<unknown> | undefined
    await ended(sql, onward, async () => {
      other = failureOf(
        sql.begin(async transaction => {
          await transaction.unsafe(insert('first'))
          begun.resolve()
          await gate.promise
          await transaction.unsafe('select 1') // what the other work sends comes before its answer
          await transaction.unsafe(insert('second'))
          throw new Error('undo it')
        }),
      )
      await begun.promise
    })
    gate.resolve()
    expect(await other).toMatchObject({ message: 'undo it' })
    expect(await lines()).toEqual([])
  })

  test('during a statement, refuses what a work does that ignores this', async () => {
    const sql = single()
    const pid = Promise.withResolvers<number>()
    const after = Promise.withResolvers<Error>()
    const outcome = failureOf(
      postgresFence(sql).transaction(holder('during', 5), async transaction => {
        const [row] = await transaction<{ pid: number }[]>`select pg_backend_pid() as pid`
        pid.resolve(row?.pid ?? 0)
        await transaction`select pg_sleep(60)`.catch(() => {})
        after.resolve(await failureOf((async () => transaction.unsafe(insert('after')))()))
      }),
    )
    const backend = await pid.promise
    const isAsleep = `select 1 from pg_stat_activity where pid = ${backend} and wait_event = 'PgSleep'`
    await until('it sleeps', async () => (await server.query(isAsleep)).length > 0)
    await server.query(`select pg_terminate_backend(${backend})`)
    expect(await outcome).toBeInstanceOf(Error)
    expect(await after.promise).toMatchObject({ message: expect.stringMatching(/was not sent/) })
    // postgres.js also reports the end of the session to the first query after it.
    await sql`select 1`.catch(() => {})
    await sql`select 1`
    expect(await lines()).toEqual([])
  })
})

test('a statement of postgres.js for which its work did not wait is not sent after the commit', async () => {
  const sql = single()
  const gate = Promise.withResolvers<void>()
  let late: Promise<Error> | undefined
  await postgresFence(sql).transaction(holder('late', 5), async transaction => {
    await transaction.unsafe(insert('in time'))
    late = gate.promise.then(() => failureOf((async () => transaction.unsafe(insert('late')))()))
  })
  gate.resolve()
  expect(await late).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(/await every/) })
  await sql`select 1`
  expect(await lines()).toEqual(['in time'])
})

test.each([
  ['is open', 'select 1'],
  ['has failed', 'select 1 / 0'],
])('a Client in a transaction of the caller that %s is refused, and its work is kept apart', async (_, statement) => {
  const client = new Client({ connectionString: server.url() })
  await client.connect()
  const fence = postgresFence(client)
  await client.query('begin')
  await client.query(insert('of the caller'))
  await client.query(statement).catch(() => {})
  const uses: (() => Promise<unknown>)[] = [
    () => fence.transaction(holder('apart', 5), () => client.query(insert('of the fence'))),
    () => fence.touch(holder('apart', 5)),
    () => fence.marks.raise('apart', { epoch: 0, token: 5n }),
  ]
  for (const use of uses)
    expect(await failureOf(use())).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/fence\.check/),
    })
  await client.query('rollback')
  await fence.transaction(holder('apart', 5), () => client.query(insert('of the fence')))
  expect(await lines()).toEqual(['of the fence'])
  await client.end()
})

test('a Client that does not report its transactions, as before pg 8.21, is refused except for a check', async () => {
  const client = new Client({ connectionString: server.url() })
  await client.connect()
  Object.defineProperty(client, 'getTransactionStatus', { value: undefined })
  const fence = postgresFence(client)
  await client.query('begin')
  await client.query(insert('of the caller'))
  const uses: (() => Promise<unknown>)[] = [
    () => fence.transaction(holder('older', 5), () => client.query(insert('of the fence'))),
    () => fence.touch(holder('older', 5)),
  ]
  for (const use of uses)
    expect(await failureOf(use())).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/does not report.*pass a Pool/),
    })
  await fence.check(holder('older', 5), client)
  await client.query('rollback')
  expect(await lines()).toEqual([])
  await client.end()
})
