import { LeaseError, type LeaseErrorCode } from '../../contract/errors.ts'

/** An object that was read. */
export interface ReadObject {
  /** The value that the service compares on a write, such as an ETag or a generation. */
  readonly tag: string
  readonly body: Uint8Array
}

/**
 * A service that stores objects. `httpObjects` and `s3Objects` implement it for HTTP and Amazon S3. Implement it for
 * another service.
 */
export interface Objects {
  /** Reads an object. `undefined` if it does not exist. The answer must be current, not from a cache. */
  read(key: string, signal?: AbortSignal): Promise<ReadObject | undefined>
  /**
   * Writes if the object still has this tag, and resolves to whether it did. Without a tag it writes only if the object
   * does not exist. The comparison and the write must be atomic. Different bodies of an object must have different tags.
   */
  write(key: string, body: Uint8Array, tag: string | undefined, signal?: AbortSignal): Promise<boolean>
}

/** A key for messages. The user, the password and the parameters of a URL may be secrets, such as the signature of S3. */
export function withoutSecrets(key: string): string {
  if (!/^https?:/i.test(key) || !URL.canParse(key)) return key
  const { protocol, host, pathname, search } = new URL(key)
  return `${protocol}//${host}${pathname}${search && '?…'}`
}

/** Did the condition of a write fail? 404: the object was deleted after it was read. */
export function isRefusal(status: number | undefined, tag: string | undefined): boolean {
  return status === 412 || (status === 404 && tag !== undefined)
}

/** The error for a request with this status; `undefined`: no answer came. `passing`: the code if a retry may succeed. */
export function requestFailed(
  text: string,
  status: number | undefined,
  passing: LeaseErrorCode,
  options: { readonly cause?: unknown } = {},
): LeaseError {
  if (status === undefined || status >= 500 || status === 429) return new LeaseError(passing, text, options)
  const code = status === 401 || status === 403 ? 'ACCESS_DENIED' : 'STORE_UNAVAILABLE'
  return new LeaseError(code, text, { ...options, retryable: false })
}

/** The error for an object without a tag. `what` was read. */
export function withoutTag(what: string): LeaseError {
  const text = `${what} has no ETag: use a service that returns one`
  return new LeaseError('STORE_UNAVAILABLE', text, { retryable: false })
}
