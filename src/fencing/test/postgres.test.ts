import { Client, Pool } from 'pg'
import postgresJs from 'postgres'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../lab/servers/postgres.ts'
import { until } from '../../../lab/servers/until.ts'
import { failureOf } from '../../../test/support.ts'
import { fenceSql, postgresFence } from '../postgres/index.ts'
import { holder, stale } from './support.ts'

let server: PostgresServer
let pool: Pool

beforeAll(async () => {
  server = await startPostgres({ config: { log_statement: 'all' } })
  pool = new Pool({ connectionString: server.url(), max: 20 })
  pool.on('error', () => {})
  await postgresFence(pool).install()
  await pool.query('create table entry (id serial primary key, token bigint not null)')
})
beforeEach(() => pool.query('truncate entry'))
afterAll(async () => {
  await pool.end()
  await server.stop()
})

const INSERT = 'insert into entry (token) values (1)'
const COMMIT = 'release savepoint holdfast; commit'

async function entries(): Promise<number> {
  return (await pool.query('select from entry')).rowCount ?? 0
}

describe('a transaction', () => {
  test('of a Pool is committed, and its work never begins if a newer holder was seen', async () => {
    const fence = postgresFence(pool)
    const result = await fence.transaction(holder('pool', 7), async client => {
      await client.query(INSERT)
      return 'done'
    })
    expect(result).toBe('done')
    await fence.transaction(holder('pool', 7), client => client.query(INSERT))
    const never = vi.fn<() => Promise<void>>(async () => {})
    await expect(fence.transaction(holder('pool', 6), never)).rejects.toEqual(stale(6n, 7n))
    expect(never).not.toHaveBeenCalled()
    await fence.transaction(holder('pool', 8), client => client.query(INSERT))
    await expect(fence.transaction(holder('pool', 7), async () => {})).rejects.toEqual(stale(7n, 8n))
    expect(await entries()).toBe(3)
  })

  test('of a Client is the same, one at a time', async () => {
    const client = new Client({ connectionString: server.url() })
    await client.connect()
    const fence = postgresFence(client)
    await fence.transaction(holder('client', 5), async transaction => {
      await transaction.query(INSERT)
      expect(await failureOf(fence.transaction(holder('client', 5), async () => {}))).toMatchObject({
        code: 'INVALID_ARGUMENT',
      })
      expect(await failureOf(fence.touch(holder('client', 5)))).toMatchObject({ code: 'INVALID_ARGUMENT' })
    })
    await expect(fence.transaction(holder('client', 4), async () => {})).rejects.toEqual(stale(4n, 5n))
    await fence.transaction(holder('client', 6), transaction => transaction.query(INSERT))
    expect(await entries()).toBe(2)
    await client.end()
  })

  test('of postgres.js is the same', async () => {
    const sql = postgresJs(server.url(), { onnotice: () => {} })
    const fence = postgresFence(sql)
    await fence.transaction(holder('js', 5), async transaction => {
      await transaction`insert into entry (token) values (5)`
      await transaction.savepoint(async inner => inner`insert into entry (token) values (5)`)
    })
    await expect(fence.transaction(holder('js', 4), async () => {})).rejects.toEqual(stale(4n, 5n))
    await fence.touch(holder('js', 9))
    await expect(fence.touch(holder('js', 8))).rejects.toEqual(stale(8n, 9n))
    await sql.begin(async transaction => fence.check(holder('js', 9), transaction))
    await expect(sql.begin(transaction => fence.check(holder('js', 8), transaction))).rejects.toEqual(stale(8n, 9n))
    expect(await failureOf(fence.check(holder('js', 9), sql))).toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(await entries()).toBe(2)
    await sql.end()
  })

  test('sends the token together with begin, so that it costs no round trip', async () => {
    const fence = postgresFence(pool)
    const from = server.output.length
    await fence.transaction(holder('trips', 5), client => client.query(INSERT))
    const statements = await until('they are in the log', () => {
      const found = [...server.output.slice(from).matchAll(/LOG: {2}statement: (.*)/g)].map(
        ([, text]) => text as string,
      )
      return found.includes(COMMIT) && found
    })
    const begin = expect.stringMatching(/^begin; select "holdfast"\."fence_raise_2".*; savepoint holdfast$/)
    expect(statements).toEqual([begin, INSERT, COMMIT])
  })

  test('is rolled back when its work fails, with the error of the work', async () => {
    const fence = postgresFence(pool)
    const error = new Error('mine')
    const work = async (client: { query(text: string): Promise<unknown> }): Promise<void> => {
      await client.query(INSERT)
      throw error
    }
    expect(await failureOf(fence.transaction(holder('failing', 5), work))).toBe(error)
    const broken = fence.transaction(holder('failing', 5), client => client.query('select 1 / 0'))
    expect(await failureOf(broken)).toMatchObject({ code: '22012' })
    expect(await entries()).toBe(0)
    expect(pool.idleCount).toBe(pool.totalCount)
  })

  test('rejects OUTCOME_UNKNOWN if its connection ends during the commit', async () => {
    await pool.query(`create function slow() returns trigger language plpgsql as 'begin perform pg_sleep(30); return null; end';
      create table delayed (id int);
      create constraint trigger slow after insert on delayed deferrable initially deferred for each row execute function slow()`)
    const fence = postgresFence(pool)
    const pid = Promise.withResolvers<number>()
    const outcome = failureOf(
      fence.transaction(holder('cut', 5), async client => {
        const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
        await client.query('insert into delayed values (1)')
        pid.resolve(rows[0]?.pid ?? 0)
      }),
    )
    const backend = await pid.promise
    const isCommitting = `select 1 from pg_stat_activity where pid = ${backend} and query = '${COMMIT}' and state = 'active'`
    await until('it commits', async () => (await server.query(isCommitting)).length > 0)
    await server.query(`select pg_terminate_backend(${backend})`)
    expect(await outcome).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  })

  test('of one holder runs concurrently with another, and a newer holder waits for both', async () => {
    const fence = postgresFence(pool)
    await fence.touch(holder('beside', 5))
    const gate = Promise.withResolvers<void>()
    const inside: Promise<void>[] = []
    const both = [0, 1].map(() => {
      const { promise, resolve } = Promise.withResolvers<void>()
      inside.push(promise)
      return fence.transaction(holder('beside', 5), async client => {
        resolve()
        await gate.promise
        await client.query(INSERT)
      })
    })
    await Promise.all(inside)
    const order: string[] = []
    const newer = fence.touch(holder('beside', 6)).then(() => order.push('newer'))
    await until('it waits', async () => {
      return (await server.query("select 1 from pg_stat_activity where wait_event_type = 'Lock'")).length > 0
    })
    const older = Promise.all(both).then(() => order.push('older'))
    gate.resolve()
    await Promise.all([newer, older])
    expect(order.sort()).toEqual(['newer', 'older'])
    expect(await entries()).toBe(2)
  })
})

describe('a holder that hangs in its transaction', () => {
  test('makes the next one fail in time, with the reason', async () => {
    const fence = postgresFence(pool)
    const gate = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const stopped = fence.transaction(holder('stuck', 5), async () => {
      begun.resolve()
      await gate.promise
    })
    await begun.promise
    const abort = new AbortController()
    const impatient = failureOf(fence.transaction(holder('stuck', 6), { signal: abort.signal }, async () => {}))
    const patient = failureOf(fence.touch(holder('stuck', 6)))
    const reason = new Error('enough')
    abort.abort(reason)
    expect(await impatient).toBe(reason)
    expect(await patient).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/locked.*maxIdle/),
    })
    gate.resolve()
    await stopped
    await until('all clients are back', () => pool.idleCount === pool.totalCount)
    await fence.touch(holder('stuck', 6))
  })

  test('loses its session after the option maxIdle', async () => {
    const fence = postgresFence(pool, { maxIdle: 200 })
    const gate = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const stopped = failureOf(
      fence.transaction(holder('idle', 5), async client => {
        begun.resolve()
        await gate.promise
        await client.query(INSERT)
      }),
    )
    await begun.promise
    await fence.touch(holder('idle', 6))
    gate.resolve()
    expect(await stopped).toBeInstanceOf(Error)
    expect(await entries()).toBe(0)
  })
})

test('an abort while the work runs rolls it back, with the reason', async () => {
  const fence = postgresFence(pool)
  const abort = new AbortController()
  const reason = new Error('enough')
  const outcome = fence.transaction(holder('aborted', 5), { signal: abort.signal }, async client => {
    await client.query(INSERT)
    abort.abort(reason)
  })
  expect(await failureOf(outcome)).toBe(reason)
  expect(await failureOf(fence.touch(holder('aborted', 5), { signal: abort.signal }))).toBe(reason)
  expect(await entries()).toBe(0)
})

test('a check inside a transaction of your own refuses, and so does its statement through anything', async () => {
  const fence = postgresFence(pool, { resource: 'ledger' })
  await fence.touch(holder('any', 5))
  const client = await pool.connect()
  for (const show of [
    () => fence.check(holder('other', 4), client),
    () => client.query(fence.statement(holder('other', 4))),
  ]) {
    await client.query('begin')
    expect(await failureOf(show())).toMatchObject({
      message: expect.stringMatching(/4 is refused: "ledger" has seen (0:)?5/),
    })
    await client.query('rollback')
  }
  client.release()
  expect(await failureOf(fence.check(holder('any', 5), pool))).toMatchObject({ code: 'INVALID_ARGUMENT' })
})

test('marks can be listed, advanced to another epoch, and pruned', async () => {
  const fence = postgresFence(pool, { resource: 'moved' })
  await fence.touch(holder('any', 900))
  expect(await fence.marks.advance('moved')).toBe(1)
  expect(await fence.marks.advance('nobody')).toBeUndefined()
  await expect(fence.touch(holder('any', 901))).rejects.toEqual(stale(901n, 0n))
  const next = postgresFence(pool, { resource: 'moved', epoch: 1 })
  await next.touch(holder('any', 3))
  const [mark] = await next.marks.list('moved')
  expect(mark).toMatchObject({ resource: 'moved', epoch: 1, token: 3n })
  expect(Math.abs((mark?.raisedAt ?? 0) - Date.now())).toBeLessThan(60_000)
  expect(await next.marks.prune(3_600_000, 'moved')).toBe(0)
  expect(await next.marks.prune(0, 'moved')).toBe(1)
  expect(await next.marks.list('moved')).toEqual([])
})

test('marks survive a restart of the server', async () => {
  const own = await startPostgres()
  const survivor = new Pool({ connectionString: own.url() })
  survivor.on('error', () => {})
  const fence = postgresFence(survivor)
  await fence.install()
  await fence.touch(holder('restarted', 7))
  await own.kill()
  expect(await failureOf(fence.touch(holder('restarted', 8)))).toMatchObject({ retryable: true })
  await own.start()
  await until(
    'it is refused',
    async () => (await failureOf(fence.touch(holder('restarted', 6)))).code === 'STALE_TOKEN',
  )
  await survivor.end()
  await own.stop()
})

test('a hanging server is given up, and its connection is closed', async () => {
  const own = await startPostgres()
  const patient = new Pool({ connectionString: own.url() })
  patient.on('error', () => {})
  const fence = postgresFence(patient)
  await fence.install()
  await own.pause()
  const [begun, touched] = await Promise.all([
    failureOf(fence.transaction(holder('silent', 1), async () => {})),
    failureOf(fence.touch(holder('silent', 1))),
  ])
  expect(begun).toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringMatching(/no answer within/) })
  expect(touched).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  own.resume()
  await fence.transaction(holder('silent', 1), async () => {})
  await patient.end()
  await own.stop()
})

test('a Client whose server hung is in no transaction afterwards', async () => {
  const own = await startPostgres()
  const client = new Client({ connectionString: own.url() })
  await client.connect()
  const fence = postgresFence(client)
  await fence.install()
  await own.pause()
  expect(await failureOf(fence.transaction(holder('silent', 1), async () => {}))).toMatchObject({
    code: 'STORE_UNAVAILABLE',
  })
  own.resume()
  await client.query('create table written_later ()')
  expect(await own.query("select to_regclass('written_later') is not null as is_there")).toEqual([{ is_there: true }])
  await client.end()
  await own.stop()
})

test('missing, forbidden and invalid things are refused with what to do', async () => {
  const missing = postgresFence(pool, { table: 'nowhere' })
  const uses: (() => Promise<unknown>)[] = [
    () => missing.touch(holder('a', 1)),
    () => missing.transaction(holder('a', 1), async () => {}),
    () => missing.marks.list(),
  ]
  for (const use of uses)
    expect(await failureOf(use())).toMatchObject({
      code: 'NOT_MIGRATED',
      message: expect.stringMatching(/"holdfast"\."nowhere".*holdfast fence sql/),
    })
  await server.query(`${fenceSql({ table: 'changed' })}; alter table holdfast.changed rename column epoch to era`)
  expect(await failureOf(postgresFence(pool, { table: 'changed' }).touch(holder('a', 1)))).toMatchObject({
    code: 'FORMAT_MISMATCH',
    message: expect.stringMatching(/has other columns: use the same version/),
  })
  await server.query('create role reader login; grant usage on schema holdfast to reader')
  const reader = new Pool({ connectionString: server.url('reader') })
  expect(await failureOf(postgresFence(reader).touch(holder('a', 1)))).toMatchObject({
    code: 'ACCESS_DENIED',
    message: expect.stringMatching(/grant usage .* select, insert and update/),
  })
  await reader.end()
  const fence = postgresFence(pool)
  const wrong: [string, () => unknown][] = [
    ['no client', () => postgresFence({} as never)],
    ['an unknown option', () => postgresFence(pool, { tabel: 'x' } as never)],
    ['an epoch', () => postgresFence(pool, { epoch: -1 })],
    ['an empty resource', () => postgresFence(pool, { resource: '' })],
    ['a table to quote', () => postgresFence(pool, { table: 'a b' })],
    ['a number for a token', () => fence.statement({ name: 'a', token: 5 } as never)],
    ['no lease', () => fence.statement(undefined as never)],
  ]
  for (const [what, use] of wrong) expect(use, what).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  const rejected: (() => Promise<unknown>)[] = [
    () => fence.transaction(holder('a', 1), 'select 1' as never),
    () => fence.transaction(holder('a', 1), { abort: 1 } as never, async () => {}),
    () => fence.check(holder('a', 1), {} as never),
    () => fence.marks.raise('a', { epoch: 0, token: 2n ** 63n }),
    () => fence.marks.prune(-1),
  ]
  for (const use of rejected) expect(await failureOf(use())).toMatchObject({ code: 'INVALID_ARGUMENT' })
})
