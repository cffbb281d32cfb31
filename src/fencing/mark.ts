import { LeaseError } from '../contract/errors.ts'

/**
 * What a writer presents: a `Lease` or a `Permit`, or the name and token of one of another process. A `Lease` that has ended
 * in this process is refused before anything is sent, and again before the write is committed. A permit is compared by its
 * slots. Without its limit and slots it would count as a lease, and refuse the other permits that are held.
 */
export interface Holder {
  readonly name: string
  /** The token. `holdfast run` passes it as text: `33`, or `33/5:0+2` for a permit of limit 5 in the slots 0 and 2. */
  readonly token: bigint | string
  /** The limit of a permit, 2^31 - 1 for a reader. @default 1 */
  readonly limit?: number | undefined
  /** The slots of a permit. @default slot 0, if the limit is 1 */
  readonly slots?: readonly number[] | undefined
}

/**
 * Several holders that write together: the `LeaseSet` of `locks.all(names)`, or the names and tokens of another process.
 * Each name is a resource with a mark of its own. All are presented, or none.
 */
export interface Holders {
  readonly leases: readonly Holder[]
}

/**
 * The high-water mark of a resource: the highest epoch and token that it has seen. Tokens of one name are comparable as
 * long as the name stays in one store. `epoch` counts the moves to another store, and is compared before the token.
 */
export interface Mark {
  /** The epoch. @default 0 */
  readonly epoch: number
  readonly token: bigint
}

/** What a holder presents to a resource. */
export interface Shown extends Mark {
  /** The limit. Above 1, other holders at the same time may have lower or higher tokens. @default 1 */
  readonly limit?: number | undefined
  /** The slots of a permit, in rising order. @default slot 0, if the limit is 1 */
  readonly slots?: readonly number[] | undefined
}

/** The high-water marks of resources. */
export interface Marks {
  /**
   * Raises the marks of a resource, or rejects `STALE_TOKEN` with both tokens if the resource has seen a higher one that
   * counts for this holder. The comparison and the change are atomic. Marks never fall. After any other rejection the
   * marks may have been raised: call it again.
   */
  raise(resource: string, shown: Shown, signal?: AbortSignal): Promise<void>
}

/** Compares two marks. Below 0 if `mark` is older than the other, 0 if they are equal. */
export function compareMarks(mark: Mark, other: Mark): number {
  return mark.epoch - other.epoch || Number(mark.token - other.token)
}

/** The error that every fence throws for a stale holder. */
export function staleToken(resource: string, mark: Mark, highest: Mark): LeaseError {
  const [shown, seen] = [mark, highest].map(({ epoch, token }) => (epoch > 0 ? `${epoch}:${token}` : `${token}`))
  const what = `token ${shown} is refused: ${JSON.stringify(resource)} has seen ${seen}`
  const why =
    highest.epoch > mark.epoch
      ? `its epoch is ${highest.epoch}, and the fence has ${mark.epoch}: stop, and set its option epoch`
      : 'so a newer holder has written: stop'
  return new LeaseError('STALE_TOKEN', `${what}, ${why}`, {
    token: mark.token,
    highest: highest.token,
  })
}
