import { LeaseError, type LeaseErrorCode } from '../../contract/errors.ts'
import { causeOf, noAnswerFrom, otherServer, textOf, unfit } from '../wire/failure.ts'
import { LAST_TOKEN } from './sql.ts'

interface Refusal {
  /** A pattern for the start of the SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html */
  readonly state: RegExp
  readonly code: LeaseErrorCode
  readonly says: string
  /** @default that of the code */
  readonly retryable?: boolean
  /** Could another connection reach a server that serves the request? */
  readonly elsewhere?: boolean
}

// After each of these errors, nothing was done. 57P01 to 57P03 are not included if the request was sent: a server that
// shuts down may have committed a request that it could no longer answer.
const refusals: readonly Refusal[] = [
  {
    state: /^28/,
    code: 'ACCESS_DENIED',
    says: 'PostgreSQL refused the user name or password: correct them in the client or the URL',
  },
  { state: /^3D000/, code: 'INVALID_ARGUMENT', says: 'the database does not exist: correct its name, or create it' },
  {
    state: /^42501/,
    code: 'ACCESS_DENIED',
    says: 'the PostgreSQL user may not do what leases need: grant the permissions listed in docs/stores/postgres.md',
  },
  {
    state: /^(42P01|42883|3F000|42703)/,
    code: 'NOT_MIGRATED',
    says: 'the tables or functions of leases are missing or foreign: run holdfast migrate --store URL',
  },
  {
    state: /^25006/,
    code: 'STORE_UNAVAILABLE',
    says:
      'the PostgreSQL server is read-only, such as a standby: connect to the primary; behind pgpool, list the functions of ' +
      'the schema holdfast in write_function_list',
    elsewhere: true,
  },
  {
    state: /^HF001/,
    code: 'STORE_UNAVAILABLE',
    retryable: false,
    says: "leases need the isolation level read committed: alter role … set default_transaction_isolation to 'read committed'",
  },
  {
    state: /^57014/,
    code: 'STORE_UNAVAILABLE',
    says: 'PostgreSQL cancelled the request, and nothing was done: raise statement_timeout if it is short',
  },
  {
    state: /^55P03/,
    code: 'STORE_UNAVAILABLE',
    says: 'another session keeps a table of leases locked, as vacuum full does, or the row of a waiter, and nothing was done: wait for it',
  },
  { state: /^53300/, code: 'STORE_UNAVAILABLE', says: 'PostgreSQL has no connection left: raise max_connections' },
  {
    // 22021 is excluded: a pooler that mixed up requests inserts bytes that no client sent.
    state: /^(40|53|54|57P03|XX|0A|22(?!021)|23|25|42|55|58)/,
    code: 'STORE_UNAVAILABLE',
    says: 'PostgreSQL cannot serve the request now',
  },
]

/** Is it an error response that the server would also send on another connection? */
export function isReply(error: unknown): boolean {
  const refusal = refusalOf(error)
  return LeaseError.is(error) || (refusal !== undefined && refusal.elsewhere !== true)
}

/** The error for the caller. Its cause has only the text and the code, because errors of clients contain queries. */
export function failure(error: unknown, sent: boolean): LeaseError {
  if (LeaseError.is(error)) return error
  const refusal = refusalOf(error)
  if (!refusal) return noAnswerFrom('PostgreSQL', error, sent, otherServer('PostgreSQL', error))
  // A standby may be promoted, and another server may answer at the same address.
  const cause = Object.assign(causeOf(error), { code: stateOf(error) })
  const { code, says, retryable } = refusal
  return new LeaseError(code, `${says} (${textOf(error)})`, { cause, retryable })
}

function refusalOf(error: unknown): Refusal | undefined {
  const state = stateOf(error)
  return state === undefined ? undefined : refusals.find(refusal => refusal.state.test(state))
}

/** The SQLSTATE, which has five characters. The codes of Node and of postgres.js, such as ECONNRESET, are longer. */
export function stateOf(error: unknown): string | undefined {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown }
  // A login that pg itself gives up, for example because a required password is missing, has no code.
  if (code === undefined && String(message).startsWith('SASL: ')) return '28P01'
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && code !== 'EPIPE' ? code : undefined
}

/** The error for a name that can no longer be granted. `also`: what was done all the same. */
export function exhausted(also = ''): LeaseError {
  const message =
    `the name has used up its tokens: another program set its counter to ${LAST_TOKEN}${also}. End the holder, ` +
    'delete the row of the name, and begin the next epoch of fences that saw that token (docs/stores/postgres.md)'
  return unfit(message)
}
