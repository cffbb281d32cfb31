import { LeaseError } from '../../contract/errors.ts'
import { openLink } from '../shared/link.ts'
import type { Link, PostgresClient } from './client.ts'
import { driverOf } from './driver.ts'
import { failure } from './failure.ts'
import { FORMAT, type Names, namesOf, type Place } from './names.ts'
import { schemaSql } from './schema.ts'

const OLDEST = 120_000

/** Milliseconds. */
const LONGEST = 30_000

/** Two that make the same at once would meet halfway. */
const TURN = "select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('holdfast migrate'));"

/** What `migrate` does, as SQL to read or to put into migrations of your own; it may be carried out again. */
export function migration(place: Place = {}): string {
  return `begin;\n${inTurn(schemaSql(namesOf(place)))}\ncommit;\n`
}

/** By one at a time; what is sent in one message is a transaction. */
export function inTurn(text: string): string {
  return `${TURN}\n${text}`
}

/**
 * Makes the schema, tables and functions that are missing, all or none of them, and brings the functions up to date, on
 * a connection of its own like that of the client. Rejects `INVALID_ARGUMENT` if the user may not, or if a table of
 * that name is another's; `STORE_UNAVAILABLE`.
 */
export async function migrate(client: PostgresClient, place: Place = {}): Promise<void> {
  const names = namesOf(place)
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const message = `the tables could not be made within ${LONGEST} ms: perhaps another session has locked them`
    // It keeps the process alive, as our connections do not.
    timer = setTimeout(() => reject(new LeaseError('STORE_UNAVAILABLE', message)), LONGEST)
  })
  let open: Link | undefined
  try {
    const look = async (link: Link): Promise<void> => void (await lookAt(link, names))
    open = await openLink(driverOf(client, 'migrate(client)'), look, new AbortController().signal)
    await Promise.race([makeSchema(open, names), late])
  } catch (error) {
    throw failure(error, false)
  } finally {
    clearTimeout(timer)
    open?.close()
  }
}

export async function makeSchema(link: Link, names: Names): Promise<void> {
  await link.ask(`${inTurn(schemaSql(names))}\nselect null, $0`)
}

/** The server's time, and the format of the table, if that is there. Rejects what this version cannot work with. */
export async function lookAt(link: Link, { lease }: Names): Promise<{ time: number; format: number | undefined }> {
  const answer = await link.askInTime(
    `select json_build_array(extract(epoch from clock_timestamp()) * 1000, pg_backend_pid(),
      current_setting('server_version_num')::integer, current_setting('server_encoding'),
      to_regclass($1) is not null, obj_description(to_regclass($1), 'pg_class'))::text, $0`,
    [lease],
  )
  const looked = JSON.parse(String(answer)) as [number, number, number, string, boolean, string | null]
  const [time, pid, version, encoding, isThere, comment] = looked
  // The connection goes through a pooler, and old poolers mix up requests that overlap.
  if (pid !== link.pid) link.takeTurns()
  if (version < OLDEST)
    throw unusable(`the server is PostgreSQL ${Math.floor(version / 10_000)}: version 12 or later is needed`)
  // One name that it cannot store would fail all that share its statement, and there is no last name to list up to.
  if (encoding !== 'UTF8')
    throw unusable(`the database has the encoding ${encoding}: leases need one with the encoding UTF8`)
  if (!isThere) return { time, format: undefined }
  const format = Number(/^Holdfast leases, format (\d+)$/.exec(comment ?? '')?.[1])
  if (!Number.isInteger(format))
    throw unusable(`the table ${lease} exists and is not one of Holdfast's: choose another name with the option table`)
  if (format !== FORMAT)
    throw unusable(
      `the table ${lease} has format ${format}, this version of Holdfast knows format ${FORMAT}: ` +
        'use the same version everywhere, and run holdfast migrate of the newest',
    )
  return { time, format }
}

export function unusable(message: string): LeaseError {
  return new LeaseError('INVALID_ARGUMENT', message)
}
