import { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../lab/servers/postgres.ts'
import { postgresFence } from '../../../src/fencing/postgres/index.ts'
import { writer as drizzle } from '../drizzle.ts'
import { writer as knex } from '../knex.ts'
import { writer as kysely } from '../kysely.ts'
import { writer as prisma } from '../prisma.ts'
import { isStale } from '../stale.ts'

let server: PostgresServer
let pool: Pool

beforeAll(async () => {
  server = await startPostgres()
  await server.query('create table invoice ("order" text primary key, by text not null)')
  pool = new Pool({ connectionString: server.url() })
  await postgresFence(pool).install()
})
afterAll(async () => {
  await pool?.end()
  await server?.stop()
})

const writers = {
  Drizzle: () => drizzle(pool),
  Knex: () => knex(pool, server.url()),
  Kysely: () => kysely(pool),
  Prisma: () => prisma(pool),
}

test.each(Object.entries(writers))(
  'a transaction of %s is refused after a newer holder has written',
  async (library, make) => {
    const write = make()
    // Characters that a query builder could take for its own.
    const name = `${library} ? :a ?? \\ ' $1 {}`
    await write({ name, token: 1n }, library, 'older')
    await write({ name, token: 2n }, library, 'newer')
    const refused = await write({ name, token: 1n }, library, 'late').catch((error: unknown) => error)
    expect(isStale(refused), String(refused)).toBe(true)
    expect(await server.query('select by from invoice where "order" = $1', [library])).toEqual([{ by: 'newer' }])
    const failed = await write({ name, token: 3n }, library, undefined as never).catch((error: unknown) => error)
    expect(failed).toBeInstanceOf(Error)
    expect(isStale(failed)).toBe(false)
    expect(await postgresFence(pool).marks.list(name), 'it rolled back').toMatchObject([{ token: 2n }])
    if ('close' in write) await (write as ReturnType<typeof knex>).close()
  },
)
