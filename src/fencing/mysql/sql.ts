import { hex, TIME } from '../../stores/mysql/sql.ts'
import type { Presented } from '../fence.ts'

/** The number of the error that refuses a token: an integer out of range. */
export const STALE = 1690

/**
 * Seconds for which a statement waits for the mark, so that the caller is answered before 5 s are over. MySQL has no such
 * limit for one statement, so the session decides there.
 */
const LOCK_TIMEOUT = 4

/** The table of marks. It may be carried out again. */
export function marksSql(table: string): string {
  return `create table if not exists ${table} (resource varbinary(255) not null primary key,
  epoch int not null default 0, token bigint not null, raised_at bigint not null)
  engine = InnoDB comment = 'Holdfast marks, format 1: the highest token that each resource was shown'`
}

/**
 * Advances these marks, in this order, or none and fails with the error 1690 if a higher token was shown: then the sum
 * is out of range. The values that it compares are those of the locked rows, whatever the isolation level. MariaDB
 * reads the comment as part of the statement.
 */
export function raiseSql(table: string, presented: readonly Presented[]): string {
  const rows = presented.map(
    ({ resource, mark: { epoch, token } }) => `(${hex(resource)}, ${epoch}, ${token}, ${TIME})`,
  )
  return `/*M! set statement innodb_lock_wait_timeout = ${LOCK_TIMEOUT} for */
insert into ${table} (resource, epoch, token, raised_at)
values ${rows.join(', ')}
on duplicate key update
  raised_at = if(epoch = values(epoch) and token = values(token), raised_at, values(raised_at)),
  token = if(epoch > values(epoch) or epoch = values(epoch) and token > values(token),
    9223372036854775807 + epoch + token, values(token)),
  epoch = values(epoch)`
}
