import { driverOf } from '../../stores/mysql/connection.ts'
import { clientAt } from '../../stores/mysql/open.ts'
import { FORMAT, isOurs, tableOf } from '../../stores/mysql/schema.ts'
import { readOnlyOf } from '../../stores/mysql/sql.ts'
import { openConnection } from '../../stores/wire/connection.ts'
import { clockFinding, type Finding, ok, problem, tlsFinding, warning } from './finding.ts'
import { whileOpen } from './while-open.ts'

/** Checks the MySQL or MariaDB server of a URL. Rejects if it cannot be reached. `signal` ends the checks. */
export async function checkMysql(url: string, signal: AbortSignal): Promise<Finding[]> {
  const { client, tables, options } = clientAt(url)
  const connection = await openConnection(driverOf(client, 'doctor'), async () => {}, signal)
  return whileOpen(connection, signal, async () => {
    const sent = Date.now()
    const [[is, time, readOnly, flush] = []] = await connection.rows(
      `select version(), unix_timestamp(sysdate(6)) * 1000, ${readOnlyOf()}, @@global.innodb_flush_log_at_trx_commit`,
    )
    const received = Date.now()
    const found = await connection.rows(`select table_comment from information_schema.tables
      where table_schema = database() and table_name in ('${tableOf(tables)}', '${tableOf(tables)}_line')`)
    return [
      tlsFinding(new URL(url).hostname, options.get('tls') === 'true'),
      clockFinding(Number(time), sent, received),
      version(String(is)),
      role(Number(readOnly) === 1),
      durability(Number(flush)),
      schema(found.map(([comment]) => String(comment))),
    ]
  })
}

export function version(is: string): Finding {
  const [, maria] = /^(\d+\.\d+).*MariaDB/.exec(is) ?? []
  if (maria === '10.11') return ok('version', `MariaDB ${is}`)
  const why = maria ? 'Holdfast is not tested with it' : 'Holdfast is not tested with MySQL'
  return warning('version', maria ? `MariaDB ${is}` : `MySQL ${is}`, why, 'use MariaDB 10.11, or test your version')
}

function role(isReadOnly: boolean): Finding {
  if (!isReadOnly) return ok('mysql-role', 'the server accepts writes')
  const why = 'a server with read_only, such as a replica, refuses writes of most users'
  return problem('mysql-role', 'the server is read-only', why, 'use the URL of the primary')
}

function durability(flush: number): Finding {
  if (flush === 1) return ok('mysql-durability', 'commits survive a crash')
  const what = `innodb_flush_log_at_trx_commit is ${flush}`
  const why = 'the store refuses a server that forgets commits in a crash'
  return problem('mysql-durability', what, why, 'set global innodb_flush_log_at_trx_commit = 1')
}

function schema(comments: readonly string[]): Finding {
  const id = 'mysql-schema'
  if (comments.length === 0) {
    const why = 'leases have no place to be stored'
    return problem(id, 'the tables are missing', why, 'run holdfast migrate')
  }
  if (comments.every(isOurs) && comments.length === 2) return ok(id, `the tables have format ${FORMAT}`)
  const why = `this version of Holdfast uses format ${FORMAT}`
  return problem(
    id,
    'the tables have another format, or are not those of Holdfast',
    why,
    'read docs/operations/upgrades.md',
  )
}
