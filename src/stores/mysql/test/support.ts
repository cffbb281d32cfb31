import { createPool } from 'mysql2'
import { createConnection } from 'mysql2/promise'
import type { MariaDbServer } from '../../../../lab/servers/mariadb.ts'
import type { Store } from '../../../contract/store.ts'
import { type MysqlOptions, mysql } from '../index.ts'

export { acquire, claimOf, failureOf, hold, look, signal } from '../../../../test/support.ts'

/** A store of its own, which creates its tables. */
export function storeAt(uri: string, options: MysqlOptions = { create: true }): Store {
  return mysql(createPool({ uri }), options)
}

/** Another program's transaction, of which this was the first statement. It is rolled back at the end. */
export async function transaction(server: MariaDbServer, statement: string): Promise<AsyncDisposable> {
  const connection = await createConnection(server.url())
  await connection.beginTransaction()
  await connection.query(statement)
  return {
    async [Symbol.asyncDispose]() {
      await connection.rollback()
      await connection.end()
    },
  }
}
