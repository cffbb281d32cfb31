import { LeaseError } from '../contract/errors.ts'

/**
 * What a writer shows of its lease: a `Lease`, or its name and token as they came from another process. A `Lease` that is
 * over in this process is refused before anything is sent, and again before the write is committed.
 */
export interface Holder {
  readonly name: string
  readonly token: bigint
}

/**
 * What a resource remembers: the highest that it was shown. Tokens of one name are comparable for as long as it stays in
 * one store; `lineage` counts the moves to another, and is compared before the token.
 */
export interface Mark {
  /** @default 0 */
  readonly lineage: number
  readonly token: bigint
}

/** Where the marks of resources are kept. */
export interface Marks {
  /**
   * Remembers the mark of a resource, in one step with the look whether a higher one was shown before: then rejects
   * `STALE_TOKEN`, with both tokens. Marks never fall. What rejects otherwise may or may not have raised it: ask again.
   */
  raise(resource: string, mark: Mark, signal?: AbortSignal): Promise<void>
}

/** Below 0 if `mark` is older than the other, 0 if it is the same. */
export function compareMarks(mark: Mark, other: Mark): number {
  return mark.lineage - other.lineage || Number(mark.token - other.token)
}

/** What everybody who refuses a holder throws. */
export function staleToken(resource: string, mark: Mark, highest: Mark): LeaseError {
  const [shown, seen] = [mark, highest].map(({ lineage, token }) => (lineage > 0 ? `${lineage}:${token}` : `${token}`))
  const what = `token ${shown} is refused: ${JSON.stringify(resource)} has seen ${seen}`
  return new LeaseError('STALE_TOKEN', `${what}, so that a newer holder has written; stop`, {
    token: mark.token,
    highest: highest.token,
  })
}
