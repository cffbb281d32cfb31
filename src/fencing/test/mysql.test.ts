import { createConnection as createCallbackConnection, createPool as createCallbackPool } from 'mysql2'
import { createConnection, createPool, type Pool, type RowDataPacket } from 'mysql2/promise'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type MariaDbServer, startMariaDb } from '../../../lab/servers/mariadb.ts'
import { failureOf } from '../../../test/support.ts'
import { fenceSql, mysqlFence } from '../mysql/index.ts'
import { holder, stale } from './support.ts'

let server: MariaDbServer
let pool: Pool

beforeAll(async () => {
  server = await startMariaDb({ config: { sql_mode: '' } }) // the loosest
  pool = createPool({ uri: server.url(), connectionLimit: 20 })
  await mysqlFence(pool).install()
  await mysqlFence(pool).install()
  await pool.query('create table entry (id int auto_increment primary key, token bigint not null)')
})
beforeEach(() => pool.query('delete from entry'))
afterAll(async () => {
  await pool.end()
  await server.stop()
})

const INSERT = 'insert into entry (token) values (1)'

async function entries(): Promise<number> {
  return (await pool.query<RowDataPacket[]>('select 1 from entry'))[0].length
}

/** A connection of its own, and how to close it. */
async function single() {
  const connection = await createConnection(server.url())
  return Object.assign(connection, { [Symbol.dispose]: () => connection.destroy() })
}

describe('a transaction', () => {
  test('of a pool is committed, unless a newer holder was seen: then it never begins its work', async () => {
    const fence = mysqlFence(pool)
    const result = await fence.transaction(holder('pool', 7), async connection => {
      await connection.query(INSERT)
      return 'done'
    })
    expect(result).toBe('done')
    await fence.transaction(holder('pool', 7), connection => connection.query(INSERT))
    const never = vi.fn<() => Promise<void>>(async () => {})
    await expect(fence.transaction(holder('pool', 6), never)).rejects.toEqual(stale(6n, 7n))
    expect(never).not.toHaveBeenCalled()
    await fence.transaction(holder('pool', 8), connection => connection.query(INSERT))
    await expect(fence.transaction(holder('pool', 7), async () => {})).rejects.toEqual(stale(7n, 8n))
    expect(await entries()).toBe(3)
  })

  test('of a callback pool gets a connection with promises', async () => {
    const callbacks = createCallbackPool({ uri: server.url() })
    const fence = mysqlFence(callbacks)
    await fence.transaction(holder('callbacks', 5), async connection => {
      await connection.query(INSERT)
    })
    await expect(fence.transaction(holder('callbacks', 4), async () => {})).rejects.toEqual(stale(4n, 5n))
    expect(await entries()).toBe(1)
    callbacks.end()
  })

  test('of a connection is the same, one at a time, and never inside of another', async () => {
    using connection = await single()
    const fence = mysqlFence(connection)
    await fence.transaction(holder('single', 5), async own => {
      await own.query(INSERT)
      expect(await failureOf(fence.transaction(holder('single', 5), async () => {}))).toMatchObject({
        code: 'INVALID_ARGUMENT',
      })
    })
    await expect(fence.transaction(holder('single', 4), async () => {})).rejects.toEqual(stale(4n, 5n))
    await connection.beginTransaction()
    await connection.query(INSERT)
    expect(await failureOf(fence.transaction(holder('single', 5), async () => {}))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/fence\.check/),
    })
    await connection.commit() // which is untouched
    expect(await entries()).toBe(2)
  })

  test('is not shared by two fences over one connection with callbacks and with promises', async () => {
    const callbacks = createCallbackConnection(server.url())
    onTestFinished(() => callbacks.destroy())
    const fences = [mysqlFence(callbacks), mysqlFence(callbacks.promise()), mysqlFence(callbacks.promise())]
    const outcomes = await Promise.allSettled(
      fences.map(fence => fence.transaction(holder('shared', 5), own => own.query(INSERT))),
    )
    const refused = {
      status: 'rejected',
      reason: { code: 'INVALID_ARGUMENT', message: expect.stringMatching(/in a transaction of a fence/) },
    }
    expect(outcomes).toMatchObject([{ status: 'fulfilled' }, refused, refused])
    expect(await entries()).toBe(1)
    await mysqlFence(callbacks).transaction(holder('shared', 5), own => own.query(INSERT))
  })

  test('is rolled back when its work fails, with the error of the work', async () => {
    const fence = mysqlFence(pool)
    const error = new Error('mine')
    const failing = fence.transaction(holder('failing', 5), async connection => {
      await connection.query(INSERT)
      throw error
    })
    expect(await failureOf(failing)).toBe(error)
    expect(await entries()).toBe(0)
    const [rows] = await pool.query<RowDataPacket[]>('select @@autocommit as autocommit')
    expect(rows).toEqual([{ autocommit: 1 }])
  })

  test.each(['rollback', 'commit', 'create table if not exists made (id int)'])(
    'whose work ends it by %s writes nothing after that, and says so',
    async end => {
      const fence = mysqlFence(pool)
      const ended = fence.transaction(holder('ended', 5), async connection => {
        await connection.query(end)
        await connection.query(INSERT)
      })
      expect(await failureOf(ended)).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringMatching(/committed or rolled back/),
      })
      expect(await entries()).toBe(0)
    },
  )

  test('that a deadlock rolled back commits nothing, even if its work ignores that', async () => {
    await pool.query('create table pair (id int primary key, n int)')
    await pool.query('insert into pair values (1, 0), (2, 0)')
    const fence = mysqlFence(pool)
    using rival = await single()
    const outcome = failureOf(
      fence.transaction(holder('deadlock', 5), async connection => {
        await connection.query('update pair set n = 1 where id = 1')
        await rival.beginTransaction()
        // The rival has written more, so it is the other one that is rolled back.
        await rival.query('insert into entry (token) select seq from seq_1_to_100')
        await rival.query('update pair set n = 2 where id = 2')
        const waiting = rival.query('update pair set n = 2 where id = 1')
        expect(await failureOf(connection.query('update pair set n = 1 where id = 2'))).toMatchObject({ errno: 1213 })
        await waiting
        await rival.rollback()
        await connection.query(INSERT)
      }),
    )
    expect(await outcome).toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(await entries()).toBe(0)
  })

  test('is refused after 4 s behind an older one that is paused, and not before its own is ended', async () => {
    const fence = mysqlFence(pool)
    const gate = Promise.withResolvers<void>()
    const inside = Promise.withResolvers<void>()
    const older = fence.transaction(holder('waits', 5), async connection => {
      inside.resolve()
      await gate.promise
      await connection.query(INSERT)
    })
    await inside.promise
    const began = performance.now()
    expect(await failureOf(fence.touch(holder('waits', 6)))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/locked/),
    })
    expect(performance.now() - began).toBeLessThan(5_000)
    const controller = new AbortController()
    const reason = new Error('enough')
    const aborted = failureOf(fence.transaction(holder('waits', 6), { signal: controller.signal }, async () => {}))
    controller.abort(reason)
    expect(await aborted).toBe(reason)
    gate.resolve()
    await older
    await fence.touch(holder('waits', 6))
    expect(await entries()).toBe(1)
  })

  test('leaves the outcome unknown when its connection ends while it commits', async () => {
    const fence = mysqlFence(pool)
    const outcome = failureOf(
      fence.transaction(holder('cut', 5), async connection => {
        await connection.query(INSERT)
        const query = connection.query.bind(connection)
        connection.query = (async (options: { sql: string }) => {
          if (options.sql.startsWith('commit')) connection.destroy()
          return query(options)
        }) as typeof connection.query
      }),
    )
    expect(await outcome).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  })
})

describe('a check', () => {
  test('guards a transaction of your own, in any isolation level', async () => {
    const fence = mysqlFence(pool)
    using connection = await single()
    for (const level of ['repeatable read', 'read committed', 'serializable']) {
      const name = `own ${level}`
      await fence.touch(holder(name, 5))
      await connection.query(`set transaction isolation level ${level}`)
      await connection.beginTransaction()
      await connection.query('select * from holdfast_fence') // a snapshot before the newer holder
      await (level === 'serializable' ? undefined : fence.touch(holder(name, 6)))
      const highest = level === 'serializable' ? 5n : 6n
      await expect(fence.check(holder(name, 4), connection)).rejects.toEqual(stale(4n, highest))
      await fence.check(holder(name, highest), connection)
      await connection.rollback()
    }
  })

  test('outside of a transaction is refused, and so is a pool', async () => {
    const fence = mysqlFence(pool)
    using connection = await single()
    const refused = { code: 'INVALID_ARGUMENT', message: expect.stringMatching(/no transaction/) }
    expect(await failureOf(fence.check(holder('outside', 5), connection))).toMatchObject(refused)
    expect(await failureOf(fence.check(holder('outside', 5), pool))).toMatchObject({ code: 'INVALID_ARGUMENT' })
    await connection.query('set autocommit = 0')
    await fence.check(holder('outside', 5), connection)
    await connection.rollback()
  })

  test('by its statements alone refuses with an error of the server', async () => {
    const fence = mysqlFence(pool)
    using connection = await single()
    await fence.touch(holder("it's", 5))
    const run = async (statements: readonly string[]): Promise<void> => {
      for (const sql of statements) await connection.query(sql)
    }
    await connection.beginTransaction()
    expect(await failureOf(run(fence.statements(holder("it's", 4))))).toMatchObject({ errno: 1690 })
    await run(fence.statements(holder("it's", 6)))
    await connection.commit()
    await expect(fence.touch(holder("it's", 5))).rejects.toEqual(stale(5n, 6n))
  })
})

test('without its table it says what to do, and the SQL creates it', async () => {
  const fence = mysqlFence(pool, { table: 'other_fence' })
  expect(await failureOf(fence.touch(holder('a', 1)))).toMatchObject({
    code: 'NOT_MIGRATED',
    message: expect.stringMatching(/fence\.install/),
  })
  await pool.query(fenceSql({ table: 'other_fence' }))
  await fence.touch(holder('a', 1))
  await pool.query('alter table other_fence rename column epoch to era')
  expect(await failureOf(fence.touch(holder('a', 2)))).toMatchObject({
    code: 'FORMAT_MISMATCH',
    message: expect.stringMatching(/has other columns: use the same version/),
  })
})

test('a server that does not respond is given up after 5 s', async () => {
  const fence = mysqlFence(pool)
  await fence.touch(holder('paused', 5))
  await Promise.all([1, 2].map(() => pool.query('select sleep(0.05)'))) // it has a free connection for both
  await server.pause()
  onTestFinished(() => server.resume())
  const began = performance.now()
  const outcomes = await Promise.all(
    [fence.touch(holder('paused', 6)), fence.transaction(holder('paused', 6), async () => {})].map(failureOf),
  )
  expect(outcomes).toMatchObject([{ code: 'OUTCOME_UNKNOWN' }, { code: 'STORE_UNAVAILABLE' }])
  expect(performance.now() - began).toBeLessThan(8_000)
  server.resume()
  await fence.transaction(holder('paused', 6), async () => {})
})

test('a connection whose rollback was answered late commits each statement by itself again', async () => {
  using connection = await single()
  const fence = mysqlFence(connection)
  const outcome = failureOf(
    fence.transaction(holder('late', 5), async own => {
      await own.query(INSERT)
      await server.pause()
      throw new Error('mine')
    }),
  )
  onTestFinished(() => server.resume())
  await outcome
  server.resume()
  const autocommit = async (): Promise<unknown> =>
    (await connection.query<RowDataPacket[]>('select @@autocommit as autocommit'))[0][0]?.autocommit
  await vi.waitFor(async () => expect(await autocommit()).toBe(1), 30_000)
  await connection.query(INSERT)
  expect(await entries()).toBe(1)
})
