import { LeaseError, type LeaseErrorCode } from '../../contract/errors.ts'

interface Refusal {
  /** SQLSTATE, from its beginning: https://www.postgresql.org/docs/current/errcodes-appendix.html */
  readonly state: RegExp
  readonly code: LeaseErrorCode
  readonly says: string
  /** Might another connection find a server that can? */
  readonly elsewhere?: boolean
}

// Each of these says that nothing was done. Not among them: 57P01 to 57P03 once a request has left, since a server that
// is shut down may have committed what it could no longer answer.
const refusals: readonly Refusal[] = [
  {
    state: /^28/,
    code: 'INVALID_ARGUMENT',
    says: 'PostgreSQL refused the user name or password: correct them in the client or the URL',
  },
  { state: /^3D000/, code: 'INVALID_ARGUMENT', says: 'there is no such database: correct its name, or make it' },
  {
    state: /^42501/,
    code: 'INVALID_ARGUMENT',
    says: 'the PostgreSQL user may not do what leases need: grant the permissions listed in docs/stores/postgres.md',
  },
  {
    state: /^(42P01|42883|3F000|42703)/,
    code: 'INVALID_ARGUMENT',
    says: 'the tables or functions of leases are not there, or are others: run holdfast migrate --store URL',
  },
  {
    state: /^25006/,
    code: 'STORE_UNAVAILABLE',
    says: 'the PostgreSQL server is read-only, such as a standby: connect to the primary',
    elsewhere: true,
  },
  {
    state: /^HF001/,
    code: 'INVALID_ARGUMENT',
    says: "leases need the isolation level read committed: alter role … set default_transaction_isolation to 'read committed'",
  },
  {
    state: /^57014/,
    code: 'STORE_UNAVAILABLE',
    says: 'PostgreSQL cancelled the request, most likely by its statement_timeout: nothing was done',
  },
  {
    state: /^55P03/,
    code: 'STORE_UNAVAILABLE',
    says: 'somebody has locked a table of leases for long, as vacuum full does: nothing was done',
  },
  { state: /^53300/, code: 'STORE_UNAVAILABLE', says: 'PostgreSQL has no connection left: raise max_connections' },
  {
    // Not 22021: a pooler that mixed up requests puts in bytes that no client sent.
    state: /^(40|53|54|57P03|XX|0A|22(?!021)|23|25|42|55|58)/,
    code: 'STORE_UNAVAILABLE',
    says: 'PostgreSQL cannot serve now',
  },
]

/** Did the server answer, only not as hoped, and would do so on another connection? */
export function isReply(error: unknown): boolean {
  const refusal = refusalOf(error)
  return LeaseError.is(error) || (refusal !== undefined && refusal.elsewhere !== true)
}

/** The error that a caller sees. Its cause keeps text and code alone: those of the clients carry queries. */
export function failure(error: unknown, sent: boolean): LeaseError {
  if (LeaseError.is(error)) return error
  const text = textOf(error)
  const state = stateOf(error)
  const cause = Object.assign(new Error(text), state === undefined ? {} : { code: state })
  const refusal = refusalOf(error)
  // A standby may be promoted, and another server may answer at the same address.
  if (refusal) return new LeaseError(refusal.code, `${refusal.says} (${text})`, { cause })
  return sent
    ? new LeaseError('OUTCOME_UNKNOWN', `no answer came from PostgreSQL: ${text}`, { cause })
    : new LeaseError('STORE_UNAVAILABLE', `PostgreSQL cannot be reached: ${text}`, { cause })
}

function refusalOf(error: unknown): Refusal | undefined {
  const state = stateOf(error)
  return state === undefined ? undefined : refusals.find(refusal => refusal.state.test(state))
}

/** The SQLSTATE, five characters. The codes of Node and of postgres.js, such as ECONNRESET, are longer. */
export function stateOf(error: unknown): string | undefined {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown }
  // A login that pg gives up by itself, such as one without the password that the server asks for, has no code.
  if (code === undefined && String(message).startsWith('SASL: ')) return '28P01'
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && code !== 'EPIPE' ? code : undefined
}

function textOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  // A failed connection to several addresses of a host has no text of its own.
  return text || (error instanceof AggregateError ? error.errors.map(textOf).join('; ') : 'no reason given')
}
