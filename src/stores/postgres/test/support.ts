import { Client, Pool } from 'pg'
import { onTestFinished } from 'vitest'
import type { PostgresServer } from '../../../../lab/servers/postgres.ts'
import type { Store } from '../../../contract/store.ts'
import { type PostgresOptions, postgres } from '../index.ts'

export { acquire, claimOf, failureOf, hold, look, signal } from '../../../../test/support.ts'

/** A separate store, which creates its tables. */
export function storeAt(url: string, options: PostgresOptions = { create: true }): Store {
  return postgres(new Pool({ connectionString: url }), options)
}

/** Another program's connection, in a transaction of which this was the first statement. */
export async function transaction(
  server: Pick<PostgresServer, 'url'>,
  text: string,
  values: unknown[] = [],
  user?: string,
): Promise<Transaction> {
  const client = new Client({ connectionString: server.url(user) })
  client.on('error', () => {})
  onTestFinished(() => client.end()) // else the locks of a failed attempt would stop the next one
  await client.connect()
  await client.query('begin')
  const { rowCount } = await client.query(text, values)
  return {
    rowCount: rowCount ?? 0,
    async query(next) {
      return (await client.query(next)).rows
    },
    async end(how = 'commit') {
      await client.query(how)
      await client.end()
    },
  }
}

interface Transaction {
  readonly rowCount: number
  /** The rows of another statement. */
  query(text: string): Promise<unknown[]>
  end(how?: 'commit' | 'rollback'): Promise<void>
}

/** The rows of one query, or several statements, of another user or in another database. */
export async function queryAt(url: string, text: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}
