import { checkText, invalid, show } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { keepAlive } from '../../contract/timers.ts'
import { openConnection } from '../wire/connection.ts'
import { unfit } from '../wire/failure.ts'
import { NEVER } from '../wire/timeouts.ts'
import { driverOf, type MysqlClient, type MysqlConnection } from './connection.ts'
import { failure, lockedBy } from './failure.ts'

/** The table in which leases are stored, in the database of the client. */
export interface Tables {
  /** The table of leases. The table of waiters has the same name followed by `_line`. @default 'holdfast_lease' */
  readonly table?: string | undefined
}

/** The format number of the tables, which their comments contain. */
export const FORMAT = 2

/** The smallest packet size in bytes. 256 requests with the longest names and notes take 576 kB. */
const SMALLEST_PACKET = 1_048_576

/** Throws `INVALID_ARGUMENT` for a name that would need quoting in SQL. */
export function tableOf({ table = 'holdfast_lease' }: Tables): string {
  checkText(table, 'the table')
  if (/^[a-z_][a-z0-9_]{0,39}$/.test(table)) return table
  throw invalid(`the table must be 1 to 40 of a-z, 0-9 and _, and not begin with a digit: not ${show(table)}`)
}

/** The statements that create the tables. Times are microseconds since 1970. README.md describes the tables. */
function statements(table: string): string[] {
  const [bytes, text] = ['varbinary(255)', 'varchar(255) character set utf8mb4 collate utf8mb4_bin not null']
  return [
    `create table if not exists ${table} (name ${bytes} not null primary key,
  holders mediumtext character set utf8mb4 collate utf8mb4_bin not null,
  token bigint not null, changed bigint not null, expires bigint not null, stamp bigint not null)
  engine = InnoDB comment = 'Holdfast leases, format ${FORMAT}'`,
    `create table if not exists ${table}_line (name ${bytes} not null, id ${bytes} not null, owner ${text}, note ${text},
  seq bigint not null, lapses bigint not null, gone boolean not null, ttl bigint not null, slot_limit int not null,
  units int not null, grace int not null, passed boolean not null, primary key (name, id), key in_order (name, seq))
  engine = InnoDB comment = 'Holdfast waiters, format ${FORMAT}'`,
  ]
}

/** Is this the comment of a table of leases or waiters in this format? */
export function isOurs(comment: string): boolean {
  return [`Holdfast leases, format ${FORMAT}`, `Holdfast waiters, format ${FORMAT}`].includes(comment)
}

/** The SQL of `migrate`, for your own migrations. It may run again. */
export function migration(tables: Tables = {}): string {
  return statements(tableOf(tables))
    .map(statement => `${statement};\n`)
    .join('\n')
}

/** Creates the tables that are missing. Rejects `ACCESS_DENIED` and `STORE_UNAVAILABLE`. */
export async function migrate(client: MysqlClient, tables: Tables = {}): Promise<void> {
  await change(client, statements(tableOf(tables)))
}

/** Runs statements over its own connection within 5 s. Rejects with a `LeaseError`. */
export async function change(client: MysqlClient, all: readonly string[]): Promise<void> {
  const work = async (connection: MysqlConnection): Promise<void> => {
    for (const statement of all) await connection.change(statement)
  }
  const stop = keepAlive() // our connections and timers do not
  try {
    ;(await openConnection(driverOf(client, 'migrate(client)'), work, NEVER)).close()
  } catch (error) {
    throw failure(error, false)
  } finally {
    stop()
  }
}

/**
 * Sets the settings that the statements depend on. Rejects a server that cannot keep leases. If tables are missing, it
 * creates them (`create`) or rejects.
 */
export async function prepare(connection: MysqlConnection, table: string, create: boolean, tries = 40): Promise<void> {
  const patience = "if(version() like '%MariaDB%', 0, 1)" // seconds; MySQL does not accept 0
  await connection.change(`set names utf8mb4, autocommit = 1, time_zone = '+00:00', sql_safe_updates = 0,
    sql_select_limit = 18446744073709551615, sql_big_selects = 1,
    innodb_lock_wait_timeout = ${patience}, lock_wait_timeout = ${patience}`)
  await connection.change('set session transaction isolation level read committed, read write')
  const [[sync, , moves, packet] = []] = await connection.rows(
    'select @@global.innodb_flush_log_at_trx_commit, sleep(0.001), sysdate(6) > now(6), @@max_allowed_packet',
  )
  if (Number(sync) !== 1)
    throw unfit('the server forgets commits in a crash: set global innodb_flush_log_at_trx_commit = 1')
  if (Number(moves) !== 1) throw unfit('the server was started with sysdate-is-now: start it without')
  if (Number(packet) < SMALLEST_PACKET)
    throw unfit(`the server cannot receive a batch of requests: set max_allowed_packet = ${SMALLEST_PACKET} or more`)
  const tables = await connection.rows(`select table_name, table_comment, engine, table_type
    from information_schema.tables
    where table_schema = database() and table_name in ('${table}', '${table}_line')`)
  // The server does not know the engine and the comment of a table that another connection is creating, because this query
  // waits for no lock.
  const locked = tables.find(([, , engine, type]) => engine === null && type === 'BASE TABLE')
  if (locked) {
    if (tries === 0) throw lockedBy(String(locked[1])) // MariaDB reports the reason instead of the comment
    await new Promise(resolve => setTimeout(resolve, 50))
    return prepare(connection, table, create, tries - 1)
  }
  for (const [name, comment, engine] of tables) {
    const [, format] = /^Holdfast \w+, format (\d+)$/.exec(String(comment)) ?? []
    if (format === undefined)
      throw invalid(`the table ${name} belongs to another application: choose another name with the option table`)
    if (!isOurs(String(comment)))
      throw new LeaseError(
        'FORMAT_MISMATCH',
        `the table ${name} has format ${format}, and this version of Holdfast supports format ${FORMAT}: ` +
          'use the same version everywhere, or choose another name with the option table',
      )
    if (engine !== 'InnoDB')
      throw unfit(`the table ${name} must be of InnoDB, not ${engine}: alter table ${name} engine = InnoDB`)
  }
  if (tables.length === 2) return
  if (!create) {
    // The list lacks tables for which the user has no privilege.
    await connection.rows(`select 1 from ${table} limit 0`)
    const cure = 'run holdfast migrate --store URL, or set create: true'
    throw new LeaseError('NOT_MIGRATED', `the tables of leases are missing: ${cure}`)
  }
  // Another connection may be creating the tables now. It has locks on tables, and on rows in InnoDB's own tables.
  await connection.change('set lock_wait_timeout = 5, innodb_lock_wait_timeout = 5')
  for (const statement of statements(table)) await connection.change(statement)
  return prepare(connection, table, false) // some servers choose another engine
}
