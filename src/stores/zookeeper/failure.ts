import { LeaseError, type LeaseErrorCode } from '../../contract/errors.ts'
import { code } from './protocol.ts'

/** A server answered, and this is the error that it named. */
export class Refused extends Error {
  readonly code: number

  constructor(error: number) {
    super(refusals[error]?.name ?? `error ${error}`)
    this.code = error
  }
}

/** The connection ended, or never came to be. */
export class Disconnected extends Error {}

/** The server said that the session is over: its nodes are gone, or go with this. */
export class Expired extends Error {}

interface Refusal {
  readonly name: string
  readonly code: LeaseErrorCode
  readonly says: string
}

const LATER: Pick<Refusal, 'code' | 'says'> = { code: 'STORE_UNAVAILABLE', says: 'ZooKeeper cannot serve now' }

const refusals: Readonly<Record<number, Refusal>> = {
  [code.noAuth]: {
    name: 'NOAUTH',
    code: 'INVALID_ARGUMENT',
    says: 'the user may not do what leases need: correct auth, or grant the permissions in docs/stores/zookeeper.md',
  },
  [code.authFailed]: {
    name: 'AUTHFAILED',
    code: 'INVALID_ARGUMENT',
    says: 'ZooKeeper refused the user name or password: correct auth, or the URL',
  },
  [code.unimplemented]: {
    name: 'UNIMPLEMENTED',
    code: 'INVALID_ARGUMENT',
    says: 'the server does not know what leases need: ZooKeeper 3.6 or later is needed',
  },
  [-114]: {
    name: 'INVALIDACL',
    code: 'INVALID_ARGUMENT',
    says: 'the server takes no permissions of the scheme digest: enable its digest authentication, or leave out auth',
  },
  [-125]: { name: 'QUOTAEXCEEDED', ...LATER, says: 'the quota of the path of the leases is used up: raise it' },
  [-127]: { name: 'THROTTLEDOP', ...LATER },
  [-1]: { name: 'SYSTEMERROR', ...LATER },
  [-5]: { name: 'MARSHALLINGERROR', ...LATER, says: 'the server did not understand a request' },
  [code.badArguments]: { name: 'BADARGUMENTS', ...LATER, says: 'the server did not understand a request' },
  [code.noNode]: { name: 'NONODE', ...LATER, says: 'a node is missing that was there just now' },
  [code.nodeExists]: { name: 'NODEEXISTS', ...LATER, says: 'a node is there that was not just now' },
  [code.sessionExpired]: { name: 'SESSIONEXPIRED', ...LATER, says: 'the session ended' },
  [code.sessionMoved]: { name: 'SESSIONMOVED', ...LATER, says: 'the session went to another server' },
}

/** The error that a caller sees; of a request that left, unless `sent` is false. Others than ours pass unchanged. */
export function failure(error: unknown, sent: boolean): unknown {
  if (!(error instanceof Error) || LeaseError.is(error)) return error
  const text = error.message
  if (error instanceof Refused) {
    const { code, says } = refusals[error.code] ?? { ...LATER }
    return new LeaseError(code, `${says} (${text})`, { cause: error })
  }
  if (error instanceof Expired)
    return new LeaseError('STORE_UNAVAILABLE', `the session ended: ${text}`, { cause: error })
  if (!(error instanceof Disconnected)) return error
  return sent
    ? new LeaseError('OUTCOME_UNKNOWN', `no answer came from ZooKeeper: ${text}`, { cause: error })
    : new LeaseError('STORE_UNAVAILABLE', `ZooKeeper cannot be reached: ${text}`, { cause: error })
}

/** Did the server answer with this error? */
export function isRefused(error: unknown, ...codes: number[]): boolean {
  return error instanceof Refused && codes.includes(error.code)
}
