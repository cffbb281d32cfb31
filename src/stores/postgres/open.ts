import { invalid, show } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import type { Store } from '../../contract/store.ts'
import { warnOfClearPassword } from '../url/clear-password.ts'
import { load, WHERE } from '../url/load.ts'
import { decodePart, optionsOf } from '../url/options.ts'
import { openConnection } from '../wire/connection.ts'
import { NEVER } from '../wire/timeouts.ts'
import type { PostgresClient } from './client.ts'
import { driverOf } from './driver.ts'
import { type PostgresOptions, postgres } from './index.ts'
import { migrate, migration } from './migrate.ts'
import { namesOf, type Tables } from './names.ts'
import { takeTls } from './tls.ts'

interface Target {
  /** The URL for the driver. */
  readonly url: URL
  readonly tables: Tables
  readonly create: boolean
  readonly direct: URL | false | undefined
  readonly minTtl: number | undefined
}

/** The options of the store. The other options are for the driver. */
const OURS: ReadonlySet<string> = new Set(['table', 'create', 'direct', 'minTtl'])
const DRIVERS: ReadonlySet<string> = new Set(['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'application_name'])

/** The reason to refuse the option `schema` of Prisma: the tables would be among those that `prisma db push` drops. */
const OF_PRISMA =
  'the PostgreSQL URL has the option schema, which is for Prisma: leave it out, because the tables of Holdfast are in a ' +
  'schema of their own; table=SCHEMA.TABLE names another'

const SHAPE = 'write postgres://[user:password@]host[:port][/database][?table=[SCHEMA.]TABLE&create=true&direct=…]'

/**
 * Opens the store at `postgres[ql]://[user:password@]host[:port][/database]`, over pg or postgres, whichever `load` finds
 * first.
 * @throws LeaseError INVALID_ARGUMENT for an invalid URL, DRIVER_MISSING
 */
export async function openPostgres(url: string): Promise<Store> {
  const { url: own, tables, create, direct, minTtl } = read(url)
  const options: PostgresOptions = { ...tables, create, direct: direct && clientOf(direct), minTtl }
  return postgres(clientOf(own), options)
}

/** A client and the tables for a URL. It does not connect yet. */
export function clientAt(url: string): { client: PostgresClient; tables: Tables } {
  const { url: own, tables } = read(url)
  return { client: clientOf(own), tables }
}

/** The tables in a URL. */
export function tablesOf(url: string): Tables {
  return read(url).tables
}

/** Migrates the tables of a URL and resolves to the name of the table of leases. Rejects as `migrate` does. */
export async function migrateUrl(url: string): Promise<string> {
  const { url: own, tables } = read(url)
  await migrate(clientOf(own), tables)
  return namesOf(tables).lease
}

/** Deletes the rows of these names from the tables of a URL. */
export async function forgetNames(url: string, names: readonly string[]): Promise<void> {
  const { url: own, tables } = read(url)
  const { lease, shared } = namesOf(tables)
  const connection = await openConnection(driverOf(clientOf(own), 'forgetNames'), async () => {}, NEVER)
  try {
    const values = [JSON.stringify(names)]
    await connection.askInTime(
      `with asked as (
        select array(select json_array_elements_text($1)) as names
      ), shared as (
        delete from ${shared} using asked where name = any(names)
      ), gone as (
        delete from ${lease} using asked where name = any(names)
      ) select null, $0`,
      values,
    )
  } finally {
    connection.close()
  }
}

/** The SQL of the migration for a URL. */
export function migrationOf(url: string): string {
  return migration(tablesOf(url))
}

/** Parses a URL. No message repeats the URL, because it may contain a password. */
function read(text: string): Target {
  const url = parse(text)
  if (url.searchParams.has('schema')) throw invalid(OF_PRISMA)
  const given: Record<string, string> = {}
  const options = optionsOf(url.search.slice(1), [...OURS, ...DRIVERS], 'a PostgreSQL store')
  for (const [key, value] of options) {
    given[key] = value
    if (OURS.has(key)) url.searchParams.delete(key)
  }
  const { create = 'false', direct, minTtl } = given
  if (create !== 'true' && create !== 'false')
    throw invalid(`create in a URL must be true or false, not ${show(create)}`)
  return {
    url,
    tables: tablesIn(given.table),
    create: create === 'true',
    direct: direct === 'false' ? false : direct ? parse(direct) : undefined,
    minTtl: minTtl === undefined ? undefined : Number(minTtl),
  }
}

/** Parses `[SCHEMA.]TABLE`. */
function tablesIn(text: string | undefined): Tables {
  if (text === undefined) return {}
  const dot = text.indexOf('.')
  const tables = dot < 0 ? { table: text } : { schema: text.slice(0, dot), table: text.slice(dot + 1) }
  namesOf(tables)
  return tables
}

function parse(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  // If the path contains an @, the host may be the user, and the port the beginning of a password.
  if (!url || url.pathname.includes('@'))
    throw invalid(
      `the URL of the PostgreSQL store is invalid: ${SHAPE}; percent-encode special characters in a password`,
    )
  if (!/^postgres(ql)?:$/.test(url.protocol))
    throw invalid(`direct must be another postgres:// URL, or false: ${SHAPE}`)
  if (!url.hostname) throw invalid(`the URL of the PostgreSQL store has no host: ${SHAPE}`)
  if (url.hash) throw invalid('the URL of the PostgreSQL store has a #: write it as %23')
  if (url.pathname.slice(1).includes('/')) throw invalid(`the URL of the PostgreSQL store has two databases: ${SHAPE}`)
  for (const part of [url.username, url.password, url.hostname, url.pathname]) decodePart(part, 'a PostgreSQL store')
  return url
}

function clientOf(given: URL): PostgresClient {
  const url = new URL(given)
  const ssl = takeTls(url)
  if (!ssl && (url.password || process.env.PGPASSWORD)) warnOfClearPassword('PostgreSQL', url.hostname)
  const pg = load('pg') as { Pool: new (config: object) => PostgresClient } | undefined
  if (pg) return new pg.Pool({ connectionString: url.href, ssl })
  const postgresJs = load('postgres') as ((url: string, options: object) => PostgresClient) | undefined
  const host = decodeURIComponent(url.hostname)
  // postgres.js would read a Unix socket in a URL as a host name.
  if (postgresJs) return postgresJs(url.href, { ssl, ...(host.startsWith('/') && { host }) })
  throw new LeaseError('DRIVER_MISSING', `a postgres: store needs a client of PostgreSQL: npm i pg ${WHERE}`)
}
