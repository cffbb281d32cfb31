import { LeaseError, type LeaseErrorCode } from '../../contract/errors.ts'
import { causeOf, noAnswerFrom, textOf } from '../wire/failure.ts'

/** The part of a `RestError` of Azure that is read. */
interface RestError {
  readonly code?: unknown
  readonly statusCode?: unknown
  readonly response?: { readonly headers?: { get(name: string): string | undefined } } | undefined
}

/** Errors by their code in Azure, or else by status. The request did nothing, unless it could not be carried out in time. */
const REFUSALS: readonly (readonly [codes: readonly unknown[], code: LeaseErrorCode, says: string])[] = [
  [
    ['ContainerNotFound'],
    'NOT_MIGRATED',
    'the container does not exist: run holdfast migrate --store URL, or correct its name',
  ],
  [
    ['AuthenticationFailed', 401],
    'ACCESS_DENIED',
    'Azure refused the login: correct the key, SAS or credential, and the clock of this machine',
  ],
  [
    ['LeaseIdMissing', 'InvalidBlobType', 'BlobImmutableDueToPolicy'],
    'INVALID_ARGUMENT',
    'the blob cannot be overwritten: give leases a container without leases or policies of Azure',
  ],
  [
    [403],
    'ACCESS_DENIED',
    'the login may not do what leases need: grant what docs/stores/azure-blob.md lists, and let the firewall of the account admit this machine',
  ],
  [['ServerBusy', 429, 503], 'STORE_UNAVAILABLE', 'Azure limits the requests of this account: retry later'],
]

/** The system answers that it was never sent. */
const UNSENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']

/** Does the blob not exist? */
export function isMissing(error: unknown): boolean {
  return (error as RestError).code === 'BlobNotFound'
}

/** Has the blob another ETag, or does it already exist? */
export function isConflict(error: unknown): boolean {
  return ['ConditionNotMet', 'BlobAlreadyExists'].includes(String((error as RestError).code))
}

/** The error for the caller. */
export function failure(error: unknown): LeaseError {
  if (LeaseError.is(error)) return error
  const { code, statusCode, response } = Object(error) as RestError
  if (typeof statusCode !== 'number') return noAnswerFrom('Azure Blob Storage', error, !UNSENT.includes(String(code)))
  const [, is, says] = REFUSALS.find(([codes]) => codes.includes(code) || codes.includes(statusCode)) ?? []
  const seconds = Number(response?.headers?.get('retry-after'))
  const [text] = textOf(error).split('\n')
  return new LeaseError(
    is ?? 'STORE_UNAVAILABLE',
    `${says ?? 'Azure cannot serve now'} (${statusCode} ${code}: ${text})`,
    {
      cause: causeOf(error),
      ...(seconds > 0 && { retryAfter: 1_000 * seconds }),
    },
  )
}
