import postgresJs from 'postgres'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../lab/servers/postgres.ts'
import { until } from '../../../lab/servers/until.ts'
import { failureOf } from '../../../test/support.ts'
import { type PostgresFence, postgresFence } from '../postgres/index.ts'
import { holder } from './support.ts'

// postgres.js waits without a limit for an answer to `begin`, for one to `rollback`, and for a free connection.

type Sql = ReturnType<typeof postgresJs>

interface Setup extends Disposable {
  readonly server: PostgresServer
  readonly sql: Sql
  readonly fence: PostgresFence<postgresJs.TransactionSql>
}

/** A server, and postgres.js with one connection, which is open. */
async function setUp(): Promise<Setup> {
  const server = await startPostgres()
  onTestFinished(() => server.stop())
  const sql = postgresJs(server.url(), { max: 1, fetch_types: false, onnotice: () => {} })
  const fence = postgresFence(sql)
  await fence.install()
  return {
    server,
    sql,
    fence,
    [Symbol.dispose]() {
      server.resume()
      void sql.end({ timeout: 1 })
    },
  }
}

const never = (): ReturnType<typeof vi.fn<() => Promise<void>>> => vi.fn<() => Promise<void>>(async () => {})
const late = { code: 'STORE_UNAVAILABLE', message: expect.stringMatching(/no answer within/) }

test('a transaction whose begin is answered too late never runs its work, and raises no mark', async () => {
  using setup = await setUp()
  const { server, fence } = setup
  const work = never()
  await server.pause()
  expect(await failureOf(fence.transaction(holder('begin', 6), work))).toMatchObject(late)
  server.resume()
  expect(await fence.transaction(holder('begin', 5), async () => 'done')).toBe('done')
  expect(work).not.toHaveBeenCalled()
  expect(await fence.marks.list()).toMatchObject([{ token: 5n }])
})

test('a transaction whose check is answered too late never runs its work, and is rolled back', async () => {
  using setup = await setUp()
  const { server, fence } = setup
  const other = postgresJs(server.url(), { max: 1, fetch_types: false })
  onTestFinished(() => other.end({ timeout: 1 }))
  const gate = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const older = postgresFence(other).transaction(holder('check', 5), async () => {
    begun.resolve()
    await gate.promise
  })
  await begun.promise
  const work = never()
  const outcome = failureOf(fence.transaction(holder('check', 7), work))
  await until('it waits', async () => {
    return (await server.query("select 1 from pg_stat_activity where wait_event_type = 'Lock'")).length > 0
  })
  await server.pause()
  expect(await outcome).toMatchObject(late)
  server.resume()
  gate.resolve()
  await older
  expect(await fence.transaction(holder('check', 6), async () => 'done')).toBe('done')
  expect(work).not.toHaveBeenCalled()
})

test('a transaction that gets no free connection in time never runs its work', async () => {
  using setup = await setUp()
  const { sql, fence } = setup
  const gate = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const own = sql.begin(async () => {
    begun.resolve()
    await gate.promise
  })
  await begun.promise
  const work = never()
  expect(await failureOf(fence.transaction(holder('free', 6), work))).toMatchObject(late)
  gate.resolve()
  await own
  expect(await fence.transaction(holder('free', 5), async () => 'done')).toBe('done')
  expect(work).not.toHaveBeenCalled()
})

test('a transaction whose work fails while the server hangs rejects with the error of its work', async () => {
  using setup = await setUp()
  const { server, fence } = setup
  const failure = new Error('of the work')
  const outcome = failureOf(
    fence.transaction(holder('work', 5), async () => {
      await server.pause()
      throw failure
    }),
  )
  expect(await outcome).toBe(failure)
  server.resume()
  expect(await fence.transaction(holder('work', 5), async () => 'done')).toBe('done')
})
