import { createPool, type Pool, type RowDataPacket } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type MariaDbServer, startMariaDb } from '../../../lab/servers/mariadb.ts'
import { until } from '../../../lab/servers/until.ts'
import type { Holder, Holders } from '../mark.ts'
import { type MysqlFence, mysqlFence } from '../mysql/index.ts'
import { permit, reader, writer } from './support.ts'

// Transactions at `repeatable read`, in which all plain reads show what was committed before the first of them.

describe.each(['off', 'on'])('with innodb_snapshot_isolation %s', isolation => {
  let server: MariaDbServer
  let pool: Pool
  let fence: MysqlFence<{ query(sql: string): Promise<unknown> }>
  beforeAll(async () => {
    server = await startMariaDb({ config: { innodb_snapshot_isolation: isolation } })
    pool = createPool({ uri: server.url(), connectionLimit: 16 })
    fence = mysqlFence(pool)
    await fence.install()
    await pool.query('create table entry (name varchar(20) not null)')
  })
  afterAll(async () => {
    await pool.end()
    await server.stop()
  })

  /** A transaction that writes an entry, and commits when the test says so. */
  async function open(holder: Holder): Promise<() => Promise<void>> {
    const begun = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    const ended = fence.transaction(holder, async connection => {
      await connection.query(`insert into entry values ('${holder.name}')`)
      begun.resolve()
      await gate.promise
    })
    await Promise.race([begun.promise, ended])
    return () => {
      gate.resolve()
      return ended
    }
  }

  async function entries(connection: { query(sql: string): Promise<unknown> }, name: string): Promise<number> {
    const [rows] = (await connection.query(`select 1 from entry where name = '${name}'`)) as [unknown[]]
    return rows.length
  }

  const waiting = (): Promise<unknown> => {
    const sql = "select 1 from information_schema.processlist where command = 'Query' and time_ms > 100"
    return until('it waits', async () => (await pool.query<RowDataPacket[]>(sql))[0].length === 1)
  }

  test.each<[what: string, earlier: (name: string) => Holder, set: (one: string, other: string) => Holders]>([
    ['readers', name => writer(name, 5), (one, other) => ({ leases: [reader(one, 6, 0), reader(other, 6, 0)] })],
    [
      'a reader and a permit',
      name => permit(name, 5, 3, 1),
      (one, other) => ({ leases: [reader(one, 6, 0), permit(other, 6, 3, 1)] }),
    ],
  ])('a set of %s sees what the holder wrote for which it waited', async (what, earlier, set) => {
    const [one, other] = [`${what[0]} one`, `${what[0]} two`]
    await fence.touch(earlier(other))
    const commit = await open(earlier(other))
    const seen = fence.transaction(set(one, other), connection => entries(connection, other))
    await waiting()
    await commit()
    expect(await seen).toBe(1)
  })

  test('a reader begins after another one has made the mark that both share', async () => {
    await fence.touch(reader('shared', 5, 1))
    const commit = await open(reader('shared', 5, 0))
    const next = fence.transaction(reader('shared', 6, 16), async () => 'done')
    await waiting()
    await commit()
    expect(await next).toBe('done')
  })

  test('many readers that share a mark begin at once', async () => {
    await fence.touch(reader('many', 5, 1))
    const readers = Array.from({ length: 16 }, (_, index) => reader('many', 6 + index, 16 * index))
    const all = readers.map(each => fence.transaction(each, async () => each.token))
    expect(await Promise.all(all)).toEqual(readers.map(({ token }) => token))
  })
})
