import { hex, TIME } from '../../stores/mysql/sql.ts'
import type { Presented } from '../fence.ts'
import type { Mark } from '../mark.ts'
import { comparedKeysOf, isAlone, isReader, keysOf, NAME } from '../rule.ts'

/** The default table of marks. */
export const MARKS = 'holdfast_fence'

/** The number of the error that refuses a token: an integer out of range. */
export const STALE = 1690

/**
 * Seconds for which a statement waits for the mark, so that the caller gets an answer within 5 s. MySQL has no such
 * limit for one statement, so the session decides there.
 */
const LOCK_TIMEOUT = 4

const LARGEST = '9223372036854775807'
const COLUMNS = '(resource, slot, epoch, token, raised_at, shared)'

/** An empty text. The mode EMPTY_STRING_IS_NULL would read `''` as null. */
const NONE = hex(NAME)

/** Creates the table of marks. It may run again. `shared`: there may be marks of slots. */
export function marksSql(table: string): string {
  return `create table if not exists ${table} (resource varbinary(255) not null, slot varbinary(10) not null,
  epoch int not null default 0, token bigint not null, raised_at bigint not null, shared bool not null default false,
  primary key (resource, slot)) engine = InnoDB
  comment = 'Holdfast marks, format 2: the highest tokens that each resource was shown'`
}

/**
 * The statements that present these marks. If a higher token was seen, one fails with the error 1690, because a sum is
 * out of range. All compare locked rows, whatever the isolation level.
 *
 * A holder of limit 1 locks the mark of the name to write it, and reads those of slots in a later statement: a single one
 * could miss a mark that was made while it waited. A permit reads the mark of the name after it has written those of its
 * slots, so that statements which are committed one by one (`touch`) also refuse all older holders.
 */
export function raiseSql(table: string, presented: readonly Presented[]): readonly string[] {
  const alone = presented.filter(({ mark }) => isAlone(mark))
  const shared = presented.filter(({ mark }) => !isAlone(mark))
  const names = alone.map(({ resource, mark }) => rowOf(resource, NAME, mark))
  return [
    ...(names.length > 0 ? [advanceSql(table, names)] : []),
    ...alone.map(each => compareSlotsSql(table, each)),
    ...shared.flatMap(each => [shareSql(table, each), slotsSql(table, each), compareNameSql(table, each)]),
  ]
}

function rowOf(resource: string, key: string, { epoch, token }: Mark, shared = false): string {
  return `(${hex(resource)}, ${hex(key)}, ${epoch}, ${token}, ${TIME}, ${shared})`
}

/** Makes the mark of the name, for a permit. If it exists, it gets a shared lock. */
export function makeSql(table: string, { resource, mark }: Presented): string {
  return statement(
    `insert ignore into ${table} ${COLUMNS} values ${rowOf(resource, NAME, { ...mark, token: 0n }, true)}`,
  )
}

/** Makes the mark of the name, or notes in it that the name has slots, under a write lock. */
export function shareSql(table: string, { resource, mark }: Presented): string {
  return statement(`insert into ${table} ${COLUMNS} values ${rowOf(resource, NAME, { ...mark, token: 0n }, true)}
on duplicate key update shared = true`)
}

/** Returns a row, with a shared lock, if the name has slots. */
export function isSharedSql(table: string, { resource }: Presented): string {
  return statement(
    `select 1 from ${table} where resource = ${hex(resource)} and slot = ${NONE} and shared lock in share mode`,
  )
}

/** Advances the marks of the slots. */
export function slotsSql(table: string, { resource, mark }: Presented): string {
  const rows = keysOf(mark).map(key => rowOf(resource, key, mark))
  return isReader(mark) ? keepHigherSql(table, rows) : advanceSql(table, rows)
}

/** Advances the marks of these rows, or none. */
function advanceSql(table: string, rows: readonly string[]): string {
  return statement(`insert into ${table} ${COLUMNS}
values ${rows.join(', ')}
on duplicate key update
  raised_at = if(epoch = values(epoch) and token = values(token), raised_at, values(raised_at)),
  token = if(epoch > values(epoch) or epoch = values(epoch) and token > values(token),
    ${LARGEST} + epoch + token, values(token)),
  epoch = values(epoch)`)
}

/** Advances the marks of these rows that are lower. Each assignment sees the new values of those before it. */
function keepHigherSql(table: string, rows: readonly string[]): string {
  const isLower = 'epoch < values(epoch) or epoch = values(epoch) and token < values(token)'
  return statement(`insert into ${table} ${COLUMNS}
values ${rows.join(', ')}
on duplicate key update
  raised_at = if(${isLower}, values(raised_at), raised_at),
  token = if(${isLower}, values(token), token),
  epoch = greatest(epoch, values(epoch))`)
}

/**
 * Fails if a slot of the name has seen a higher token. Slots are read only if the name has any: that locks the gap behind
 * them, so that new names would wait.
 */
function compareSlotsSql(table: string, { resource, mark }: Presented): string {
  return statement(`select ${LARGEST} + count(*) from ${table} as name straight_join ${table} as seen force index (primary)
on seen.resource = name.resource and seen.slot > ${NONE} and ${isHigher('seen', mark)}
where name.resource = ${hex(resource)} and name.slot = ${NONE} and name.shared lock in share mode`)
}

/** Fails if the name has seen a higher token than this permit. */
export function compareNameSql(table: string, { resource, mark }: Presented): string {
  return statement(`select ${LARGEST} + count(*) from ${table} as name
where resource = ${hex(resource)} and slot = ${NONE} and ${isHigher('name', mark)} lock in share mode`)
}

/** The highest mark that refuses this holder. */
export function highestSql(table: string, { resource, mark }: Presented): string {
  const compared = comparedKeysOf(mark)
  const slots = compared ? ` and slot in (${compared.map(hex).join(', ')})` : ''
  return `select epoch, cast(token as char) from ${table} as seen
where resource = ${hex(resource)}${slots} and ${isHigher('seen', mark)}
order by epoch desc, token desc limit 1 lock in share mode`
}

/** Returns a row, without a lock, for each mark of a reader that need not be advanced. */
export function knownSql(table: string, { resource, mark }: Presented): string {
  const { epoch, token } = mark
  return `select 1 from ${table} where resource = ${hex(resource)} and slot in (${keysOf(mark).map(hex).join(', ')})
and not (epoch < ${epoch} or epoch = ${epoch} and token < ${token})`
}

function isHigher(row: string, { epoch, token }: Mark): string {
  return `(${row}.epoch > ${epoch} or ${row}.epoch = ${epoch} and ${row}.token > ${token})`
}

/** A statement with a comment, which MariaDB reads as part of the statement. */
function statement(sql: string): string {
  return `/*M! set statement innodb_lock_wait_timeout = ${LOCK_TIMEOUT} for */\n${sql}`
}
