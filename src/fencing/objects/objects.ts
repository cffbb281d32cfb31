/** An object as it was read. */
export interface ReadObject {
  /** Whatever the service compares: an ETag, a generation. */
  readonly tag: string
  readonly body: Uint8Array
}

/**
 * Where objects are. For a service that is not here these two are all that it takes: `holdfast/fencing/objects` has them
 * for whatever speaks HTTP and for Amazon S3.
 */
export interface Objects {
  /** `undefined` if there is none. What it answers must be current, not out of a cache. */
  read(key: string, signal?: AbortSignal): Promise<ReadObject | undefined>
  /**
   * Writes if the object still has this tag, or, without one, if there is none; resolves to whether it did. The service
   * must do both in one step, and no two different bodies of an object may have the same tag.
   */
  write(key: string, body: Uint8Array, tag: string | undefined, signal?: AbortSignal): Promise<boolean>
}
