import { LeaseError, type LeaseErrorCode } from '../../contract/errors.ts'
import { noAnswerFrom } from '../wire/failure.ts'
import { code } from './protocol.ts'

/** A server answered with this error code. */
export class Refused extends Error {
  readonly code: number

  constructor(error: number) {
    super(refusals[error]?.name ?? `error ${error}`)
    this.code = error
  }
}

/** The connection ended, or could not be opened. */
export class Disconnected extends Error {}

/** The session is over: the server has deleted its nodes, or is deleting them. */
export class Expired extends Error {}

interface Refusal {
  readonly name: string
  readonly code: LeaseErrorCode
  readonly says: string
  /** @default that of the code */
  readonly retryable?: boolean
}

/** This lasts until somebody changes the server. */
const UNFIT = { code: 'STORE_UNAVAILABLE', retryable: false } as const

const LATER: Pick<Refusal, 'code' | 'says'> = {
  code: 'STORE_UNAVAILABLE',
  says: 'ZooKeeper cannot serve the request now',
}

const refusals: Readonly<Record<number, Refusal>> = {
  [code.noAuth]: {
    name: 'NOAUTH',
    code: 'ACCESS_DENIED',
    says: 'the user may not do what leases need: correct auth, or grant the permissions in docs/stores/zookeeper.md',
  },
  [code.authFailed]: {
    name: 'AUTHFAILED',
    code: 'ACCESS_DENIED',
    says: 'ZooKeeper refused the user name or password: correct them in auth or the URL',
  },
  [code.unimplemented]: {
    name: 'UNIMPLEMENTED',
    ...UNFIT,
    says: 'the server does not support an operation that leases need: use ZooKeeper 3.6 or later',
  },
  [-114]: {
    name: 'INVALIDACL',
    code: 'INVALID_ARGUMENT',
    says: 'the server refuses permissions of the scheme digest: enable its digest authentication, or leave out auth',
  },
  [-120]: {
    name: 'EPHEMERALONLOCALSESSION',
    ...UNFIT,
    says: 'the server keeps its sessions local: set localSessionsUpgradingEnabled, or disable local sessions',
  },
  [-124]: {
    name: 'SESSIONCLOSEDREQUIRESASLAUTH',
    code: 'ACCESS_DENIED',
    says: 'the server demands SASL, which this client does not have: disable enforce.auth, or allow the scheme digest',
  },
  [-125]: { name: 'QUOTAEXCEEDED', ...LATER, says: 'the quota of the path of the leases is used up: raise it' },
  [-127]: { name: 'THROTTLEDOP', ...LATER },
  [-1]: { name: 'SYSTEMERROR', ...LATER },
  [-5]: { name: 'MARSHALLINGERROR', ...LATER, says: 'the server did not understand a request' },
  [code.badArguments]: { name: 'BADARGUMENTS', ...LATER, says: 'the server did not understand a request' },
  [code.noNode]: { name: 'NONODE', ...LATER, says: 'another client deleted a node meanwhile' },
  [code.nodeExists]: { name: 'NODEEXISTS', ...LATER, says: 'another client created a node meanwhile' },
  [code.sessionExpired]: { name: 'SESSIONEXPIRED', ...LATER, says: 'the session ended' },
  [code.sessionMoved]: { name: 'SESSIONMOVED', ...LATER, says: 'the session moved to another server' },
}

/** The error for the caller. `sent`: the request was sent. Errors of other classes pass unchanged. */
export function failure(error: unknown, sent: boolean): unknown {
  if (!(error instanceof Error) || LeaseError.is(error)) return error
  if (error instanceof Refused) {
    const { code, says, retryable }: Omit<Refusal, 'name'> = refusals[error.code] ?? LATER
    return new LeaseError(code, `${says} (${error.message})`, { cause: error, retryable })
  }
  if (error instanceof Expired)
    return new LeaseError('STORE_UNAVAILABLE', `the session ended: ${error.message}`, { cause: error })
  return error instanceof Disconnected ? noAnswerFrom('ZooKeeper', error, sent) : error
}

/** Did the server answer with one of these errors, or with any error if none is given? */
export function isRefused(error: unknown, ...codes: number[]): boolean {
  return error instanceof Refused && (codes.length === 0 || codes.includes(error.code))
}
