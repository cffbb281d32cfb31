import { invalid } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { keepAlive } from '../../contract/timers.ts'
import { openConnection } from '../wire/connection.ts'
import { causeOf, unfit } from '../wire/failure.ts'
import { inTime, NEVER, NoAnswer } from '../wire/timeouts.ts'
import type { PostgresClient } from './client.ts'
import type { PostgresConnection } from './connection.ts'
import { driverOf } from './driver.ts'
import { failure, stateOf } from './failure.ts'
import { FORMAT, type Names, namesOf, type Tables } from './names.ts'
import { schemaSql } from './schema.ts'

const OLDEST = 120_000

/** The longest duration of a migration in milliseconds. */
const LONGEST = 30_000

const MAY_NOT =
  'this user may not create or change the tables of leases: migrate as their owner, or as a role with create on the database'

/** Concurrent migrations would conflict, so they run one at a time. */
const LOCK = "select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('holdfast migrate'));"

/** The SQL of `migrate`, for your own migrations. It may run again. */
export function migration(tables: Tables = {}): string {
  return `begin;\n${serialized(schemaSql(namesOf(tables)))}\ncommit;\n`
}

/** Runs `text` in one process at a time. The statements of one message are a transaction. */
export function serialized(text: string): string {
  return `${LOCK}\n${text}`
}

/**
 * Creates the schema, tables and functions that are missing, and upgrades the functions, in one transaction. It uses its
 * own connection with the settings of the client. It may run again. Rejects `ACCESS_DENIED`, `FORMAT_MISMATCH`,
 * `INVALID_ARGUMENT` if a table of that name is foreign, and `STORE_UNAVAILABLE`.
 */
export async function migrate(client: PostgresClient, tables: Tables = {}): Promise<void> {
  const names = namesOf(tables)
  let connection: PostgresConnection | undefined
  const stop = keepAlive() // our connections and timers do not
  try {
    const look = async (opened: PostgresConnection): Promise<void> => void (await hasSchema(opened, names))
    connection = await openConnection(driverOf(client, 'migrate(client)'), look, NEVER)
    await inTime(makeSchema(connection, names), LONGEST)
  } catch (error) {
    if (stateOf(error) === '42501')
      throw new LeaseError('ACCESS_DENIED', `${MAY_NOT} (${(error as Error).message})`, { cause: causeOf(error) })
    if (!(error instanceof NoAnswer)) throw failure(error, false)
    const message = `the migration took longer than ${LONGEST} ms: end the session that has the tables locked, if any`
    throw new LeaseError('STORE_UNAVAILABLE', message)
  } finally {
    stop()
    connection?.close()
  }
}

/** Prepares a new connection for a store. If its tables are missing, it creates them (`create`) or rejects. */
export async function prepare(connection: PostgresConnection, names: Names, create: boolean): Promise<void> {
  if (await hasSchema(connection, names)) return
  if (create) await makeSchema(connection, names)
  else
    throw new LeaseError(
      'NOT_MIGRATED',
      `the table ${names.lease} does not exist: create it with holdfast migrate --store URL, or let the store create it ` +
        'with create: true (?create=true in a URL)',
    )
}

async function makeSchema(connection: PostgresConnection, names: Names): Promise<void> {
  await connection.ask(`${serialized(schemaSql(names))}\nselect null, $0`)
}

/** Do the tables exist? Rejects for a server or format that this version does not support. Reads the server's time. */
async function hasSchema(connection: PostgresConnection, { lease }: Names): Promise<boolean> {
  const looked = await look(connection, lease)
  // While another process commits the table, a statement may see it without its comment, because comments are read with an
  // older snapshot.
  const [, pid, version, encoding, isThere, comment] = looked[4] && !looked[5] ? await look(connection, lease) : looked
  // The connection goes through a pooler, and old poolers mix up overlapping requests.
  if (pid !== connection.pid) connection.takeTurns()
  if (version < OLDEST) throw unfit(`the server is PostgreSQL ${Math.floor(version / 10_000)}: use version 12 or later`)
  // A name that the encoding cannot represent would fail all requests of its statement. The encoding also has no text that
  // sorts after all names.
  if (encoding !== 'UTF8')
    throw unfit(`the database has the encoding ${encoding}: use a database with the encoding UTF8`)
  if (!isThere) return false
  const format = Number(/^Holdfast leases, format (\d+)$/.exec(comment ?? '')?.[1])
  if (!Number.isInteger(format))
    throw invalid(`the table ${lease} belongs to another application: choose another name with the option table`)
  if (format !== FORMAT)
    throw new LeaseError(
      'FORMAT_MISMATCH',
      `the table ${lease} has format ${format}, and this version of Holdfast supports format ${FORMAT}: ` +
        'use the same version everywhere, or choose another name with the option table',
    )
  return true
}

type Looked = [time: number, pid: number, version: number, encoding: string, isThere: boolean, comment: string | null]

async function look(connection: PostgresConnection, lease: string): Promise<Looked> {
  const sent = performance.now()
  const answer = await connection.askInTime(
    `select json_build_array(extract(epoch from clock_timestamp()) * 1000, pg_backend_pid(),
      current_setting('server_version_num')::integer, current_setting('server_encoding'),
      to_regclass($1) is not null, obj_description(to_regclass($1), 'pg_class'))::text, $0`,
    [lease],
  )
  const looked = JSON.parse(String(answer)) as Looked
  connection.clock.learn(looked[0], sent)
  return looked
}
