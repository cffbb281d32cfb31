import type { Socket } from 'node:net'
import { invalid } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import type { Store } from '../../contract/store.ts'
import { warnOfClearPassword } from '../url/clear-password.ts'
import { load, WHERE } from '../url/load.ts'
import { minTtlIn } from '../url/min-ttl.ts'
import { decodePart, optionsOf, withoutBrackets } from '../url/options.ts'
import { pemFiles, readPem } from '../url/pem.ts'
import { type MysqlClient, socketTo } from './connection.ts'
import { mysql } from './index.ts'
import { change, migrate, migration, type Tables, tableOf } from './schema.ts'
import { hex } from './sql.ts'

const SHAPE = 'write mysql://[user:password@]host[:port]/database[?table=…&create=true&tls=true]'

/**
 * Opens the store at `mysql://[user:password@]host[:port]/database`, over mysql2.
 * @throws LeaseError INVALID_ARGUMENT for an invalid URL, DRIVER_MISSING
 */
export async function openMysql(url: string): Promise<Store> {
  const { client, tables, options } = clientAt(url)
  return mysql(client, { ...tables, create: options.get('create') === 'true', minTtl: minTtlIn(options) })
}

/** The client, the tables and the options of a URL. The client does not connect yet. */
export function clientAt(url: string): { client: MysqlClient; tables: Tables; options: URLSearchParams } {
  const { hostname, port, username, password, pathname, search } = parse(url)
  const options = optionsOf(search.slice(1), ['table', 'create', 'minTtl', 'tls', ...pemFiles], 'a MySQL store')
  for (const name of ['create', 'tls'])
    if (!/^(true|false)$/.test(options.get(name) ?? 'false')) throw invalid(`${name} in a URL is true or false`)
  const tables = { table: options.get('table') ?? undefined }
  tableOf(tables)
  const host = withoutBrackets(hostname)
  const isTls = options.get('tls') === 'true'
  if (!isTls && password) warnOfClearPassword('MySQL', host)
  const library = load('mysql2') as { createPool(config: object): MysqlClient } | undefined
  if (!library) throw new LeaseError('DRIVER_MISSING', `a mysql: store needs a client of MySQL: npm i mysql2 ${WHERE}`)
  const [user, secret, database] = [username, password, pathname.slice(1)].map(part =>
    decodePart(part, 'a MySQL store'),
  )
  const ssl = isTls ? { ...readPem(options, 'MySQL'), verifyIdentity: true } : undefined
  const to = { host, port: Number(port || 3306) }
  const stream = (): Socket => socketTo(to)
  const client = library.createPool({ ...to, user, password: secret, database, ssl, stream })
  return { client, tables, options }
}

/** Creates the tables of a URL, and resolves to their name. Rejects like `migrate`. */
export async function migrateUrl(url: string): Promise<string> {
  const { client, tables } = clientAt(url)
  await migrate(client, tables)
  return tableOf(tables)
}

/** The SQL of that migration. */
export const migrationOf = (url: string): string => migration(clientAt(url).tables)

/** Deletes the rows of these names from the tables of a URL. */
export async function forgetNames(url: string, names: readonly string[]): Promise<void> {
  const { client, tables } = clientAt(url)
  const table = tableOf(tables)
  const those = `where name in (${names.map(hex).join(', ')})`
  await change(client, [`delete from ${table}_line ${those}`, `delete from ${table} ${those}`])
}

/** Parses a URL. No message repeats the URL, because it may contain a password. */
function parse(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.hostname && /^\/?$/.test(url.pathname))
    throw invalid(`the URL of the MySQL store names no database: ${SHAPE}`)
  // If the path contains an @, the host may be the user, and the port the beginning of a password.
  if (!url?.hostname || url.hash || !/^\/[^/@]+$/.test(url.pathname))
    throw invalid(
      `the URL of the MySQL store cannot be read: ${SHAPE}; percent-encode special characters in a password`,
    )
  return url
}
