/** An object that was read. */
export interface ReadObject {
  /** What the service compares on a write: an ETag, a generation. */
  readonly tag: string
  readonly body: Uint8Array
}

/**
 * A service that stores objects. `httpObjects` and `s3Objects` implement it for HTTP and Amazon S3. Implement it for
 * another service.
 */
export interface Objects {
  /** `undefined` if the object does not exist. The answer must be current, not from a cache. */
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
