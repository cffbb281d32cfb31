import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { pgTable, text } from 'drizzle-orm/pg-core'
import type { Pool } from 'pg'
import { postgresFence } from '../../src/fencing/postgres/index.ts'
import type { Lease } from '../../src/index.ts'

const invoice = pgTable('invoice', { order: text().primaryKey(), by: text().notNull() })

export function writer(pool: Pool) {
  const db = drizzle({ client: pool })
  const fence = postgresFence(pool)
  return (lease: Pick<Lease, 'name' | 'token'>, order: string, by: string): Promise<void> =>
    db.transaction(async tx => {
      await tx.execute(sql.raw(fence.statement(lease))) // the first statement
      await tx.insert(invoice).values({ order, by }).onConflictDoUpdate({ target: invoice.order, set: { by } })
    })
}
