import { driverOf } from '../../stores/postgres/driver.ts'
import { FORMAT, namesOf } from '../../stores/postgres/names.ts'
import { clientAt } from '../../stores/postgres/open.ts'
import { takeTls } from '../../stores/postgres/tls.ts'
import { openConnection } from '../../stores/wire/connection.ts'
import { clockFinding, type Finding, ok, problem, tlsFinding, warning } from './finding.ts'
import { direct, pooled } from './pooler.ts'
import { whileOpen } from './while-open.ts'

/** What the server says about itself. */
interface Facts {
  readonly version: string
  readonly isStandby: boolean
  readonly fsync: string
  readonly commit: string
  readonly standbys: number
  readonly time: number
  readonly synchronous: string
  readonly pid: number
  /** The comment of the table of leases, which has the format. Null if there is no table, or it has none. */
  readonly table: string | null
}

/** Checks the PostgreSQL server of a URL. Rejects if it cannot be reached. `signal` ends the checks. */
export async function checkPostgres(url: string, signal: AbortSignal): Promise<Finding[]> {
  const { client, tables } = clientAt(url)
  const driver = driverOf(client, 'doctor')
  const connection = await openConnection(driver, async () => {}, signal)
  return whileOpen(connection, signal, async () => {
    const sent = Date.now()
    const facts = JSON.parse(String(await connection.askInTime(FACTS, [namesOf(tables).lease]))) as Facts
    const received = Date.now()
    const own = new URL(url)
    const isPooled = !own.searchParams.has('direct') && connection.pid !== undefined && connection.pid !== facts.pid
    return [
      tls(new URL(url)),
      clockFinding(facts.time, sent, received),
      ...[version(facts), schema(facts), standby(facts), durability(facts), failover(facts)],
      isPooled ? await pooled(driver, connection, signal) : direct(),
    ]
  })
}

// to_regclass would fail for a user without rights on the schema, and so hide all findings.
const FACTS = `select json_build_object(
  'version', current_setting('server_version'),
  'isStandby', pg_is_in_recovery(),
  'fsync', current_setting('fsync'),
  'commit', current_setting('synchronous_commit'),
  'standbys', (select count(*) from pg_stat_replication),
  'time', extract(epoch from clock_timestamp()) * 1000,
  'synchronous', current_setting('synchronous_standby_names'),
  'pid', pg_backend_pid(),
  'table', (select obj_description(class.oid, 'pg_class')
    from pg_class class join pg_namespace schema on schema.oid = class.relnamespace
    where format('"%s"."%s"', schema.nspname, class.relname) = $1)
)::text, $0`

/** The finding about TLS, from the options of the URL. */
export function tls(url: URL): Finding {
  const { hostname } = url
  const options = takeTls(url)
  if (options === false || options.rejectUnauthorized !== false) return tlsFinding(hostname, options !== false)
  const why = 'another server can pretend to be this one, read the password, and grant leases that others hold'
  return warning('tls', 'the certificate of the server is not verified', why, 'use sslmode=verify-full and sslrootcert')
}

export function version({ version: is }: Pick<Facts, 'version'>): Finding {
  const major = Number.parseInt(is, 10)
  if (major >= 15 && major <= 17) return ok('version', `PostgreSQL ${is}`)
  const why = 'Holdfast is not tested with it'
  return warning('version', `PostgreSQL ${is}`, why, 'use PostgreSQL 15 to 17')
}

function schema({ table }: Facts): Finding {
  const id = 'postgres-schema'
  const [, format] = /^Holdfast leases, format (\d+)$/.exec(table ?? '') ?? []
  if (format === undefined) {
    const why = 'leases have no tables to be stored'
    return problem(id, 'the tables are missing, or are not those of Holdfast', why, 'run holdfast migrate')
  }
  if (Number(format) === FORMAT) return ok(id, `the tables have format ${format}`)
  const why = `this version of Holdfast uses format ${FORMAT}`
  return problem(id, `the tables have format ${format}`, why, 'read docs/operations/upgrades.md')
}

function standby({ isStandby }: Facts): Finding {
  if (!isStandby) return ok('postgres-standby', 'the server accepts writes')
  const why = 'a standby is read-only, so no lease can be acquired'
  return problem('postgres-standby', 'the server is a standby', why, 'use the URL of the primary')
}

function durability({ fsync, commit }: Facts): Finding {
  const id = 'postgres-durability'
  if (fsync === 'on') return ok(id, `fsync is on; grants are durable (synchronous_commit ${commit})`)
  const why = 'a power loss can corrupt the database or lose a lease that is held'
  return problem(id, 'fsync is off', why, 'set fsync on')
}

function failover({ standbys, commit, synchronous }: Facts): Finding {
  const id = 'postgres-failover'
  if (standbys === 0) return ok(id, 'no standby is connected')
  if (synchronous !== '' && commit !== 'local') return ok(id, `synchronous standbys: ${synchronous}`)
  const why = 'unless replication is synchronous, a failover can lose a lease, so a name can have two holders'
  const what = `standbys: ${standbys}, synchronous_commit ${commit}`
  return warning(id, what, why, 'use fencing tokens, or set synchronous_standby_names')
}
