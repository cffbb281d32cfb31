import { LeaseError } from '../../contract/errors.ts'
import { causeOf, noAnswerFrom, textOf, unfit } from '../wire/failure.ts'
import { isSupported, type NatsKvm } from './client.ts'

/** The last message of the key is another one. The second number says that other writes are under way. */
const CONFLICTS: readonly unknown[] = [10_071, 10_164, 10_201]

const NO_STREAM = 10_059

/** JetStream is off, for the account or for the server. */
const OFF: readonly unknown[] = [10_039, 10_076]

/** The error for a request that nobody receives, and for an account without JetStream. */
const NOT_ENABLED = 'JetStreamNotEnabled'

/** There is no room: the limits of the account, of the server, or of the stream. */
const NO_ROOM: readonly unknown[] = [10_002, 10_023, 10_028, 10_047, 10_077]

/** Is the version another one? */
export function isConflict(error: unknown): boolean {
  return CONFLICTS.includes(codeOf(error))
}

/** Does the bucket not exist? */
function isMissing(error: unknown): boolean {
  return codeOf(error) === NO_STREAM
}

/** The error for a bucket that forgets records. */
export function notFit(bucket: string, what: string): LeaseError {
  return unfit(
    `the bucket ${bucket} has ${what}, so it forgets who holds: give leases a bucket of their own, without limits`,
  )
}

/**
 * Throws for a server before 2.10. In a cluster it may accept two writes of one version, if they arrive together:
 * https://github.com/nats-io/nats-server/issues/4320
 */
export function refuseOld({ js }: NatsKvm): void {
  const { version } = js.nc.info ?? {} // unknown while the client connects
  if (version === undefined || isSupported(version)) return
  throw unfit(`leases need nats-server 2.10 or later on every server, and this is ${version}: upgrade all`)
}

/** The error for the caller. */
export function failure(error: unknown, bucket: string): LeaseError {
  if (LeaseError.is(error)) return error
  const { name } = Object(error) as { name?: unknown }
  const cause = causeOf(error)
  const reason = `(${textOf(error)})`
  if (isMissing(error)) {
    const says = `the bucket ${bucket} does not exist: run holdfast migrate --store URL, or migrate(kvm)`
    return new LeaseError('NOT_MIGRATED', `${says} ${reason}`, { cause })
  }
  if (OFF.includes(codeOf(error)))
    return unfit(`JetStream is off: enable it for the account and the server ${reason}`, cause)
  if (NO_ROOM.includes(codeOf(error)))
    return new LeaseError('STORE_UNAVAILABLE', `JetStream has no room: raise its limits ${reason}`, { cause })
  if (isDenied(error)) {
    const says = 'the NATS user may not do what leases need: allow the subjects listed in docs/stores/nats.md'
    return new LeaseError('ACCESS_DENIED', `${says} ${reason}`, { cause })
  }
  if (name === 'AuthorizationError' || name === 'UserAuthenticationExpiredError')
    return new LeaseError('ACCESS_DENIED', `NATS refused the user, password or token: correct them ${reason}`, {
      cause,
    })
  if (name === 'ClosedConnectionError' || name === 'DrainingConnectionError') {
    const says = 'the connection to NATS is closed: connect with maxReconnectAttempts: -1, and close it after the locks'
    return new LeaseError('STORE_UNAVAILABLE', `${says} ${reason}`, { cause })
  }
  if (name === NOT_ENABLED) {
    const says = 'no server answers for JetStream: start nats-server with -js, or wait until its cluster has a leader'
    return new LeaseError('STORE_UNAVAILABLE', `${says} ${reason}`, { cause })
  }
  return noAnswerFrom('NATS', error, name !== 'ConnectionError')
}

/** A refused publish is the cause of the error of its request. */
function isDenied(error: unknown): boolean {
  const { name, cause } = Object(error) as { name?: unknown; cause?: unknown }
  return name === 'PermissionViolationError' || (cause !== undefined && isDenied(cause))
}

/** The number of an error of JetStream. */
function codeOf(error: unknown): unknown {
  const { name, code, cause } = Object(error) as { name?: unknown; code?: unknown; cause?: unknown }
  if (name === NOT_ENABLED) return codeOf(cause) // none, if no server has answered
  return /^(JetStreamApi|StreamNotFound|ConsumerNotFound)Error$/.test(String(name)) ? code : undefined
}
