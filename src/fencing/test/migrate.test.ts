import { createPool } from 'mysql2/promise'
import { Pool } from 'pg'
import { afterAll, expect, test } from 'vitest'
import { startMariaDb } from '../../../lab/servers/mariadb.ts'
import { startPostgres } from '../../../lab/servers/postgres.ts'
import { failureOf } from '../../../test/support.ts'
import { holdfast } from '../../cli/test/holdfast.ts'
import { connect, migrate } from '../../index.ts'
import { mysqlFence } from '../mysql/index.ts'
import { postgresFence } from '../postgres/index.ts'
import { holder } from './support.ts'

const closing: (() => Promise<void>)[] = []
afterAll(async () => {
  for (const close of closing) await close()
})

const databases = {
  async postgres() {
    const server = await startPostgres()
    const pool = new Pool({ connectionString: server.url() })
    closing.push(async () => {
      await pool.end()
      await server.stop()
    })
    const url = `${server.url()}?table=locks.job`
    const fence = postgresFence(pool, { leases: { schema: 'locks', table: 'job' } })
    return { url, fence, tables: ['"locks"."job"', '"holdfast"."fence"'], query: (text: string) => pool.query(text) }
  },
  async mysql() {
    const server = await startMariaDb()
    const pool = createPool({ uri: server.url(), multipleStatements: true })
    closing.push(async () => {
      await pool.end()
      await server.stop()
    })
    const url = `${server.url()}?table=job`
    return {
      url,
      fence: mysqlFence(pool),
      tables: ['job', 'holdfast_fence'],
      query: (text: string) => pool.query(text),
    }
  },
}

test.each(Object.keys(databases) as (keyof typeof databases)[])(
  '%s: a fence that is missing is created by migrate --fence, and by its SQL, but not without --fence',
  { timeout: 60_000 },
  async engine => {
    const { url, fence, tables, query } = await databases[engine]()
    const replicas = Array.from({ length: 6 }) // which start together, in a deploy
    expect(await Promise.all(replicas.map(() => migrate(url)))).toEqual(replicas.map(() => tables.slice(0, 1)))
    expect(await failureOf(fence.touch(holder('a', 1)))).toMatchObject({
      code: 'NOT_MIGRATED',
      message: expect.stringContaining('holdfast migrate --fence'),
    })

    const { code, out } = await holdfast(['migrate', '--fence', '--json', '--store', url])
    expect({ code, out: JSON.parse(out) }).toEqual({ code: 0, out: { migrated: true, tables } })
    await using locks = await connect(url)
    await using lease = await locks.acquire('ledger')
    await fence.touch(lease)
    await expect(fence.touch(holder('ledger', 1))).rejects.toMatchObject({ code: expect.stringMatching(/STALE|LOST/) })

    await query(`drop table ${tables[1]}`)
    const { out: sql } = await holdfast(['migrate', '--fence', '--print-sql', '--store', url])
    await query(sql)
    await fence.touch(lease)
    await query(`drop table ${tables[1]}`)
    await Promise.all(replicas.map(() => fence.install()))
    await fence.touch(lease)
    expect(await migrate(url, { fence: true })).toEqual(tables) // again
  },
)

test.each([
  ['sqlite:leases.db', 'fence.install()'],
  ['redis://localhost', 'leave the option out'],
])('migrate --fence with %s is refused with what to do instead', async (url, cure) => {
  const { code, err } = await holdfast(['migrate', '--fence', '--store', url])
  expect({ code, err }).toEqual({ code: 64, err: expect.stringContaining(cure) })
  expect(await failureOf(migrate(url, { fence: true }))).toMatchObject({ code: 'INVALID_ARGUMENT' })
})
