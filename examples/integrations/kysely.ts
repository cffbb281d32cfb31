import { Kysely, PostgresDialect, sql } from 'kysely'
import type { Pool } from 'pg'
import { postgresFence } from '../../src/fencing/postgres/index.ts'
import type { Lease } from '../../src/index.ts'

interface Database {
  invoice: { order: string; by: string }
}

export function writer(pool: Pool) {
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) })
  const fence = postgresFence(pool)
  return (lease: Pick<Lease, 'name' | 'token'>, order: string, by: string): Promise<void> =>
    db.transaction().execute(async tx => {
      await sql.raw(fence.statement(lease)).execute(tx) // the first statement
      const insert = tx.insertInto('invoice').values({ order, by })
      await insert.onConflict(conflict => conflict.column('order').doUpdateSet({ by })).execute()
    })
}
