import { checkKeys } from '../../contract/check.ts'
import { abortable } from '../fence.ts'
import type { Marks } from '../mark.ts'
import type { RequestFence } from './headers.ts'

export interface TurnOptions {
  /** Ends the wait for the turn. */
  readonly signal?: AbortSignal | undefined
}

const turnKeys = new Set(['signal'])

/** Of each resource when its last turn so far ends. */
const turns = new WeakMap<Marks, Map<string, Promise<void>>>()

/**
 * Carries out `work` if no newer holder was seen, and keeps all others from the resource until it has settled: the check
 * and the write are one step for whoever goes through this function with the same `marks` object. Others wait as long
 * as `work` takes, so give it a limit. Rejects `STALE_TOKEN`, what `work` throws, or the reason of `signal`.
 *
 * Not promised: anything against other processes that write to the same place.
 */
export async function inTurn<T>(
  marks: Marks,
  fence: RequestFence,
  work: () => T | PromiseLike<T>,
  options: TurnOptions = {},
): Promise<T> {
  checkKeys(options, turnKeys, 'inTurn')
  const { signal } = options
  const ends = turns.get(marks) ?? new Map<string, Promise<void>>()
  turns.set(marks, ends)
  const before = ends.get(fence.name)
  const turn = run(before, signal, async () => {
    await marks.raise(fence.name, fence, signal)
    return await work()
  })
  // Who gives up waiting must not let those behind it pass by those before it.
  const end = Promise.allSettled([before, turn]).then(() => {
    if (ends.get(fence.name) === end) ends.delete(fence.name)
  })
  ends.set(fence.name, end)
  return await turn
}

async function run<T>(
  before: Promise<void> | undefined,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted()
  if (before) await abortable(before, signal)
  return await work()
}
