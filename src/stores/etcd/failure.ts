import { LeaseError, type LeaseErrorCode } from '../../contract/errors.ts'
import { causeOf, noAnswerFrom, textOf } from '../wire/failure.ts'

/** The largest number of characters of a server's text that messages show. */
const LONGEST_TEXT = 200

/** An error response: a gRPC code, or -1 if it did not come from etcd's gateway. */
export class Refusal extends Error {
  readonly code: number
  /** Was an earlier copy of the request left without an answer? Then that copy may have been processed. */
  isRepeated = false

  constructor(code: number, text: string) {
    super(text.slice(0, LONGEST_TEXT))
    this.code = code
  }
}

interface Meaning {
  readonly text: RegExp
  readonly code: LeaseErrorCode
  readonly says: string
  /** @default that of the code */
  readonly retryable?: boolean
}

const FOREIGN = 'the answer is not from etcd, perhaps from a proxy in front of it'

const meanings: readonly Meaning[] = [
  {
    text: /authentication failed|invalid user/i,
    code: 'ACCESS_DENIED',
    says: 'etcd refused the user name or password: correct them in the options or the URL',
  },
  {
    text: /user name is empty|user name not found|invalid auth token/i,
    code: 'ACCESS_DENIED',
    says: 'etcd requires authentication: give a user and a password',
  },
  {
    text: /permission denied/i,
    code: 'ACCESS_DENIED',
    says: 'the etcd user may not do what leases need: grant the permissions listed in docs/stores/etcd.md',
  },
  {
    text: /^HTTP 404|Not Found/,
    code: 'STORE_UNAVAILABLE',
    retryable: false,
    says:
      'the server does not answer at /v3: use etcd 3.4 or later with its JSON gateway, ' +
      'and without --enable-grpc-gateway=false; a configuration file of etcd 3.4 needs enable-grpc-gateway: true',
  },
  {
    text: /CommonName of client/,
    code: 'ACCESS_DENIED',
    says:
      'where authentication is on, the gateway of etcd refuses client certificates that have a common name: ' +
      'use a certificate without CN, and give a user and a password',
  },
  {
    text: /^Parse Error/,
    code: 'INVALID_ARGUMENT',
    says:
      'the port does not speak HTTP/1.1, which the JSON gateway needs: give an address of --listen-client-http-urls, ' +
      'if etcd has that option, because its other port then serves gRPC only',
  },
  { text: /^HTTP [34]/, code: 'STORE_UNAVAILABLE', says: FOREIGN },
  // A proxy also answers with this after it has forwarded the request.
  { text: /^HTTP /, code: 'OUTCOME_UNKNOWN', says: FOREIGN },
  {
    text: /database space exceeded/,
    code: 'STORE_UNAVAILABLE',
    says: 'the database of etcd is full: compact and defragment it, and disarm the alarm',
  },
  {
    text: /requested lease not found|lease already exists/,
    code: 'OUTCOME_UNKNOWN',
    says: 'the etcd lease of the claim was created or revoked during the request',
  },
  {
    text: /timed out|leader changed|context/,
    code: 'OUTCOME_UNKNOWN',
    says: 'etcd did not finish the request in time',
  },
  { text: /no leader/, code: 'STORE_UNAVAILABLE', says: 'etcd cannot serve the request now' },
]

/** The gRPC codes that mean that the request was not processed and will not be. */
const definite: ReadonlySet<number> = new Set([3, 5, 6, 7, 8, 9, 11, 12, 16])

const login = meanings.slice(0, 2)

const certificate = /CERT|ISSUER|SELF_SIGNED|ALTNAME|VERIFY/
const alert = /ALERT/

/** Is this the error of a repeated request that the first copy may have caused? */
export function isRepetition(error: unknown): boolean {
  return LeaseError.is(error) && error.cause instanceof Refusal && error.cause.isRepeated
}

/** Has the lease expired, or was it revoked? */
export function isLeaseMissing(error: unknown): boolean {
  return refusalText(error).includes('requested lease not found')
}

/** Is the server out of space, so that it accepts only deletions? */
export function isFull(error: unknown): boolean {
  return refusalText(error).includes('database space exceeded')
}

/** Does a transaction change one key twice? */
export function isDuplicate(error: unknown): boolean {
  return refusalText(error).includes('duplicate key')
}

/** Does the lease already exist? */
export function isLeaseThere(error: unknown): boolean {
  return refusalText(error).includes('lease already exists')
}

/** Did the server reject the auth token, as it does with an old one? */
export function isTokenOld(error: unknown): boolean {
  return /invalid auth token|revision of auth store is old|user name is empty/.test(refusalText(error))
}

export function isAuthOff(error: unknown): boolean {
  return refusalText(error).includes('authentication is not enabled')
}

/**
 * Would another server give the same answer? A server without a leader, one that shuts down, and one that is not etcd
 * answer only for themselves.
 */
export function isFinal(error: unknown): boolean {
  return error instanceof Refusal && ![-1, 4, 13, 14].includes(error.code)
}

/** The error for the caller. `sent`: the request was sent. */
export function failure(error: unknown, sent: boolean): LeaseError {
  if (LeaseError.is(error)) return error
  const text = textOf(error)
  if (error instanceof Refusal) {
    const meaning = meanings.find(each => each.text.test(text))
    const otherwise = definite.has(error.code) ? 'STORE_UNAVAILABLE' : 'OUTCOME_UNKNOWN'
    const { code: kind = otherwise, says = 'etcd cannot serve the request now', retryable } = meaning ?? {}
    return new LeaseError(kind, `${says} (${text})`, { cause: error, retryable })
  }
  const { code } = error as { code?: unknown }
  if (typeof code === 'string' && alert.test(code)) {
    const says =
      'etcd refused the certificate of this client, or requires one: give cert and key, of a certificate for clients ' +
      '(extended key usage clientAuth) by an authority that etcd trusts'
    return new LeaseError('ACCESS_DENIED', `${says} (${text})`, { cause: causeOf(error) })
  }
  if (typeof code === 'string' && certificate.test(code)) {
    const says = 'the certificate of the etcd server is not trusted: give its authority as ca'
    return new LeaseError('INVALID_ARGUMENT', `${says} (${text})`, { cause: causeOf(error) })
  }
  return noAnswerFrom('etcd', error, sent)
}

/** The error for a malformed answer. The request may have been processed. */
export function senseless(path: string): LeaseError {
  return new LeaseError(
    'OUTCOME_UNKNOWN',
    `the answer of etcd to ${path} is malformed: check the address, and proxies in between`,
  )
}

/**
 * The error for a failed login. If the login worked before, the server may be changing just now, so it is retried as long
 * as the caller waits.
 */
export function passing(error: unknown): unknown {
  if (!LeaseError.is(error) || !login.some(({ text }) => text.test(refusalText(error)))) return error
  const message = `${error.message}; etcd accepted them before, so this may be temporary`
  return new LeaseError('STORE_UNAVAILABLE', message, { cause: error.cause })
}

function refusalText(error: unknown): string {
  if (error instanceof Refusal) return error.message
  return LeaseError.is(error) && error.cause instanceof Refusal ? error.cause.message : ''
}

/** Claims of this process that may share a name are granted one after the other. For this one it took too long. */
export function crowded(name: string): LeaseError {
  const what = `many calls of this process ask for ${JSON.stringify(name)} at once, and etcd grants one after the other`
  return new LeaseError('STORE_UNAVAILABLE', `${what}: nothing was done; retry, or ask for fewer at once`)
}
