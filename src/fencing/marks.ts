import { checkText, checkWhole } from '../contract/check.ts'
import { abortable, checkMark, checkResource, type Presented } from './fence.ts'
import type { Mark, Marks } from './mark.ts'
import { NAME } from './rule.ts'

/** A stored high-water mark. */
export interface MarkRecord extends Mark {
  readonly resource: string
  /** A slot of permits, or `r0` to `r15` for the readers in each 16th slot. `undefined`: it is the mark of the name. */
  readonly slot?: string | undefined
  /** The part of the resource that this mark guards, if an engine keeps several marks for one resource. */
  readonly part?: string | undefined
  /** The time of the last change of its token, in milliseconds since 1970 by the engine's clock. */
  readonly raisedAt: number
}

/** Stored marks. They can be listed, and changed by hand, which is dangerous. */
export interface KeptMarks extends Marks {
  /** Lists the marks of resources that begin with `prefix`, sorted by resource and slot. @param prefix @default '' */
  list(prefix?: string): Promise<readonly MarkRecord[]>
  /**
   * Begins the next epoch of a resource and resolves to its number. `undefined`: the resource has no mark. From then on
   * every fence with a lower `epoch` is refused. Before you call it, make sure that no earlier holder is still running.
   */
  advance(resource: string): Promise<number | undefined>
  /**
   * Deletes the marks of resources whose marks were not raised within the last `olderThan` milliseconds, and resolves to
   * their number. A holder that has been paused for longer can then write again.
   */
  prune(olderThan: number, prefix?: string): Promise<number>
}

/** The marks as one engine stores them. Its callers have checked the arguments. */
export interface MarkTable {
  /**
   * Raises these marks, or rejects `STALE_TOKEN`. The caller is rejected when the signal aborts, so an engine only uses it
   * to send nothing more.
   */
  raise(presented: readonly Presented[], signal?: AbortSignal): Promise<unknown>
  list(prefix: string): Promise<readonly MarkRecord[]>
  advance(resource: string): Promise<number | undefined>
  prune(olderThan: number, prefix: string): Promise<number>
}

/** The marks of a table, for callers. Its calls reject `INVALID_ARGUMENT` for invalid arguments. */
export function keptMarks(table: MarkTable): KeptMarks {
  return {
    async raise(resource, mark, signal) {
      checkResource(resource)
      checkMark(mark)
      await abortable(() => table.raise([{ resource, mark }], signal), signal)
    },
    async list(prefix = '') {
      checkText(prefix, 'the prefix')
      return table.list(prefix)
    },
    async advance(resource) {
      checkResource(resource)
      return table.advance(resource)
    },
    async prune(olderThan, prefix = '') {
      checkWhole(olderThan, 'the age of marks in milliseconds', 0, Number.MAX_SAFE_INTEGER)
      checkText(prefix, 'the prefix')
      return table.prune(olderThan, prefix)
    },
  }
}

/** Converts a row of an SQL table: its resource, slot, epoch, token as text, and the milliseconds since 1970. */
export function recordOf([resource, slot, epoch, token, raisedAt]: readonly unknown[]): MarkRecord {
  return {
    resource: String(resource),
    ...(String(slot) !== NAME && { slot: String(slot) }),
    epoch: Number(epoch),
    token: BigInt(String(token)),
    raisedAt: Number(raisedAt),
  }
}
