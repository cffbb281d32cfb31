import { LeaseError, type LeaseErrorCode } from '../../contract/errors.ts'
import { causeOf, noAnswerFrom, otherServer, textOf } from '../wire/failure.ts'

const [LOCKED, READ_ONLY] = [
  [1205, 1213, 3572],
  [1290, 1792, 1836],
]

/** A node of Galera is not, or no longer, part of the cluster. */
const NOT_READY = 1047

/** The format of the binary log does not fit. */
const BINLOG = 1665

/** The outcome is unknown: a commit failed, a server shut down, or a session was killed. */
const UNKNOWN = [1030, 1053, 1180, 1317, 1927]

/**
 * Errors by number. After each of them the statement did nothing. https://mariadb.com/kb/en/mariadb-error-code-reference/
 */
const REFUSALS: readonly (readonly [numbers: readonly number[], code: LeaseErrorCode, says: string])[] = [
  [[1045, 1698, 1251, 1275], 'ACCESS_DENIED', 'the server refused the user name or password: correct them'],
  [
    [1044, 1142, 1143, 1227],
    'ACCESS_DENIED',
    'the MySQL user may not do what leases need: grant the privileges listed in docs/stores/mysql.md',
  ],
  [[1046, 1049], 'INVALID_ARGUMENT', 'the database does not exist: correct its name, or create it'],
  [[1146, 1054], 'NOT_MIGRATED', 'the tables of leases are missing or foreign: run holdfast migrate --store URL'],
  [
    [BINLOG],
    'STORE_UNAVAILABLE',
    'leases need another format of the binary log: set global binlog_format = ROW or MIXED',
  ],
  [READ_ONLY, 'STORE_UNAVAILABLE', 'the server is read-only, such as a replica: connect to the primary'],
  [LOCKED, 'STORE_UNAVAILABLE', 'another transaction or a backup has locked a row or table of leases: retry'],
  [[1040, 1203, 1226], 'STORE_UNAVAILABLE', 'the server has no connection left: raise max_connections'],
]

/** The number of an error of the server. 0: any other error. */
export function numberOf(error: unknown): number {
  const { errno, sqlState } = Object(error) as { errno?: unknown; sqlState?: unknown }
  return typeof errno === 'number' && sqlState !== undefined ? errno : 0
}

/** Did the server refuse a statement because of another transaction's lock? */
export const isLocked = (error: unknown): boolean => LOCKED.includes(numberOf(error))

/** The error that a replica reports. */
export const readOnly = (): Error => Object.assign(new Error('read_only is set'), { errno: 1290, sqlState: 'HY000' })

/** The error for a table that the server could not open. `why` is the reason. */
export const lockedBy = (why: string): Error => Object.assign(new Error(why), { errno: 1205, sqlState: 'HY000' })

/** Is it an error response that the server would also send on another connection? */
export function isReply(error: unknown): boolean {
  const number = numberOf(error)
  return LeaseError.is(error) || (number >= 1_000 && ![...READ_ONLY, ...UNKNOWN, NOT_READY].includes(number))
}

/** The error for the caller. */
export function failure(error: unknown, sent: boolean): LeaseError {
  if (LeaseError.is(error)) return error
  const number = numberOf(error)
  if (number < 1_000 || UNKNOWN.includes(number)) return noAnswerFrom('MySQL', error, sent, otherServer('MySQL', error))
  const [, code, says] = REFUSALS.find(([numbers]) => numbers.includes(number)) ?? []
  const message = `${says ?? 'MySQL cannot serve now'} (${textOf(error)})`
  const retryable = number === BINLOG ? false : undefined
  return new LeaseError(code ?? 'STORE_UNAVAILABLE', message, { cause: causeOf(error), retryable })
}
