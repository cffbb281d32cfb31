import { LeaseError, type LeaseErrorCode } from '../../contract/errors.ts'
import { causeOf, noAnswerFrom, textOf } from '../wire/failure.ts'

/**
 * Errors by name. After each of them nothing was written.
 * https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
 */
const REFUSALS: readonly (readonly [names: RegExp, code: LeaseErrorCode, says: string])[] = [
  [
    /^(AccessDenied|NotAuthorized)/,
    'ACCESS_DENIED',
    'the user or role may not do what leases need: allow the actions listed in docs/stores/dynamodb.md',
  ],
  [
    /^(UnrecognizedClient|InvalidSignature|SignatureDoesNotMatch|IncompleteSignature|MissingAuthenticationToken|InvalidClientTokenId|ExpiredToken|CredentialsProvider|TokenProvider)/,
    'ACCESS_DENIED',
    'AWS refused the credentials, or there are none: set AWS_PROFILE, AWS_ACCESS_KEY_ID or the role',
  ],
  [
    /^ResourceNotFound/,
    'NOT_MIGRATED',
    'the table TABLE does not exist in the region of the client: correct the region, or run holdfast migrate --store URL',
  ],
  [
    /^Validation/,
    'NOT_MIGRATED',
    'the table TABLE is not one of leases: its partition key must be the string "key", without a sort key',
  ],
]

/** More requests came than the table, the partition of a name, or the account allow. */
const THROTTLED = /^(ProvisionedThroughputExceeded|Throttling|ThrottledException|RequestLimitExceeded|TooManyRequests)/

/** Milliseconds until another attempt of what was throttled, after those of the client. */
const PAUSE = 500

/** Errors of connections after which nothing was sent. */
const NOT_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

/** Is the version another one? */
export function isConflict(error: unknown): boolean {
  return nameOf(error) === 'ConditionalCheckFailedException'
}

/** The name of an error of DynamoDB. */
export function nameOf(error: unknown): string {
  return String((error as { name?: unknown } | null)?.name)
}

/** The error for the caller. */
export function failure(error: unknown, table: string): LeaseError {
  if (LeaseError.is(error)) return error
  const name = nameOf(error)
  const cause = causeOf(error)
  const reason = `(${name}: ${textOf(error)})`
  if (THROTTLED.test(name)) {
    const what = `DynamoDB throttles requests to the table ${table}: raise its limit, or let fewer clients use one name`
    return new LeaseError('STORE_UNAVAILABLE', `${what} ${reason}`, { cause, retryAfter: PAUSE })
  }
  if (/^Region is missing/.test(textOf(error)))
    return new LeaseError('INVALID_ARGUMENT', 'the client has no region: new DynamoDB({ region }), or AWS_REGION', {
      cause,
    })
  const [, code, says = ''] = REFUSALS.find(([names]) => names.test(name)) ?? []
  if (code) return new LeaseError(code, `${says.replace('TABLE', table)} ${reason}`, { cause })
  return noAnswerFrom('DynamoDB', error, !NOT_SENT.has(String((cause as { code?: unknown }).code)))
}
