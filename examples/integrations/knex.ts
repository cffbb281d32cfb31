import knex from 'knex'
import type { Pool } from 'pg'
import { postgresFence } from '../../src/fencing/postgres/index.ts'
import type { Lease } from '../../src/index.ts'

/** Knex has a pool of its own. `pool` only tells the fence its kind of database: `statement` sends nothing. */
export function writer(pool: Pool, connection: string) {
  const db = knex({ client: 'pg', connection, pool: { min: 0 } })
  const fence = postgresFence(pool)
  const write = (lease: Pick<Lease, 'name' | 'token'>, order: string, by: string): Promise<void> =>
    db.transaction(async tx => {
      await tx.raw(fence.statement(lease).replaceAll('?', '\\?')) // the first statement; to Knex, ? is a parameter
      await tx('invoice').insert({ order, by }).onConflict('order').merge()
    })
  return Object.assign(write, { close: () => db.destroy() })
}
