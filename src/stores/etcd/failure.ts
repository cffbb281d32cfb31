import { LeaseError, type LeaseErrorCode } from '../../contract/errors.ts'

/** How many characters of a server's text are shown. */
const LONGEST_TEXT = 200

/** What a server answered instead of what it was asked for: the numbers of gRPC, or -1 if it was not etcd's gateway. */
export class Refusal extends Error {
  readonly code: number
  /** Did an earlier copy of the request go unanswered, so that it may have been carried out? */
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
}

const FOREIGN = 'the answer is not from etcd, perhaps from a proxy in front of it'

const meanings: readonly Meaning[] = [
  {
    text: /authentication failed|invalid user/i,
    code: 'INVALID_ARGUMENT',
    says: 'etcd refused the user name or password: correct them in the options or the URL',
  },
  {
    text: /user name is empty|user name not found|invalid auth token/i,
    code: 'INVALID_ARGUMENT',
    says: 'etcd wants to know who asks: give a user and a password',
  },
  {
    text: /permission denied/i,
    code: 'INVALID_ARGUMENT',
    says: 'the etcd user may not do what leases need: grant the permissions listed in docs/stores/etcd.md',
  },
  {
    text: /^HTTP 404|Not Found/,
    code: 'INVALID_ARGUMENT',
    says:
      'the server does not answer at /v3: etcd 3.4 or later is needed, with its JSON gateway, ' +
      'which --enable-grpc-gateway=false turns off',
  },
  { text: /^HTTP [34]/, code: 'STORE_UNAVAILABLE', says: FOREIGN },
  // A proxy also answers this for a request that it has passed on.
  { text: /^HTTP /, code: 'OUTCOME_UNKNOWN', says: FOREIGN },
  {
    text: /database space exceeded/,
    code: 'STORE_UNAVAILABLE',
    says: "etcd's database is full: compact and defragment it, and disarm the alarm",
  },
  {
    text: /requested lease not found|lease already exists/,
    code: 'OUTCOME_UNKNOWN',
    says: 'the lease of the claim came or went while it was asked about',
  },
  {
    text: /timed out|leader changed|context/,
    code: 'OUTCOME_UNKNOWN',
    says: 'etcd did not finish the request in time',
  },
  { text: /no leader/, code: 'STORE_UNAVAILABLE', says: 'etcd cannot serve now' },
]

/** The gRPC codes of errors that mean that the request was not, and will not be, carried out. */
const definite: ReadonlySet<number> = new Set([3, 5, 6, 7, 8, 9, 11, 12, 16])

/** The refusals of a login. */
const login = meanings.slice(0, 2)

const certificate = /CERT|ISSUER|SELF_SIGNED|ALTNAME|VERIFY/
const alert = /ALERT/

/** Is this refusal the answer to a second copy of a request, which the first may have made true? */
export function isRepetition(error: unknown): boolean {
  return LeaseError.is(error) && error.cause instanceof Refusal && error.cause.isRepeated
}

/** Has the lease ended, or was it revoked? */
export function isLeaseMissing(error: unknown): boolean {
  return textOf(error).includes('requested lease not found')
}

/** Has it no room, so that it deletes and nothing else? */
export function isFull(error: unknown): boolean {
  return textOf(error).includes('database space exceeded')
}

/** Does a transaction change one key twice? */
export function isDuplicate(error: unknown): boolean {
  return textOf(error).includes('duplicate key')
}

/** Is there such a lease already? */
export function isLeaseThere(error: unknown): boolean {
  return textOf(error).includes('lease already exists')
}

/** Did the server refuse who asks, as it does when a token is old? */
export function isTokenOld(error: unknown): boolean {
  return /invalid auth token|revision of auth store is old|user name is empty/.test(textOf(error))
}

export function isAuthOff(error: unknown): boolean {
  return textOf(error).includes('authentication is not enabled')
}

/**
 * Would another server say the same? One without a leader, or one that is about to end, speaks for itself alone, and so
 * does what is not etcd.
 */
export function isFinal(error: unknown): boolean {
  return error instanceof Refusal && ![-1, 4, 13, 14].includes(error.code)
}

/** The error that a caller sees of a request that left, if `sent`. No message has a password: none is in an error. */
export function failure(error: unknown, sent: boolean): LeaseError {
  if (LeaseError.is(error)) return error
  const { message, code } = error as Error & { code?: unknown }
  const text = message || (error instanceof AggregateError ? error.errors.map(String).join('; ') : String(code))
  const cause = error instanceof Refusal ? error : Object.assign(new Error(text), typeof code === 'string' && { code })
  if (error instanceof Refusal) {
    const meaning = meanings.find(each => each.text.test(text))
    const otherwise = definite.has(error.code) ? 'STORE_UNAVAILABLE' : 'OUTCOME_UNKNOWN'
    const { code: kind = otherwise, says = 'etcd cannot serve now' } = meaning ?? {}
    return new LeaseError(kind, `${says} (${text})`, { cause })
  }
  if (typeof code === 'string' && certificate.test(code) && !alert.test(code)) {
    const says = 'the certificate of the etcd server is not trusted: give its authority as ca'
    return new LeaseError('INVALID_ARGUMENT', `${says} (${text})`, { cause })
  }
  if (typeof code === 'string' && alert.test(code)) {
    const says = 'etcd refused the certificate of this client, or its lack: give cert and key'
    return new LeaseError('INVALID_ARGUMENT', `${says} (${text})`, { cause })
  }
  return sent
    ? new LeaseError('OUTCOME_UNKNOWN', `no answer came from etcd: ${text}`, { cause })
    : new LeaseError('STORE_UNAVAILABLE', `etcd cannot be reached: ${text}`, { cause })
}

/** The answer cannot be read; the request may have been carried out all the same. */
export function senseless(path: string): LeaseError {
  return new LeaseError('OUTCOME_UNKNOWN', `the answer of etcd to ${path} is malformed`)
}

/** A login that etcd accepted before may be changing. It is tried again for as long as the caller waits. */
export function passing(error: unknown): unknown {
  if (!LeaseError.is(error) || !login.some(({ text }) => text.test(textOf(error)))) return error
  const message = `${error.message}; etcd accepted them before, so this may be temporary`
  return new LeaseError('STORE_UNAVAILABLE', message, { cause: error.cause })
}

function textOf(error: unknown): string {
  if (error instanceof Refusal) return error.message
  return LeaseError.is(error) && error.cause instanceof Refusal ? error.cause.message : ''
}
