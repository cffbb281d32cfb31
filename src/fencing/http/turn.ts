import { type WorkArguments, workOf } from '../../core/work.ts'
import { abortable, type FenceCallOptions, signalOf } from '../fence.ts'
import type { Marks } from '../mark.ts'
import type { RequestFence } from './headers.ts'

/** The end of the last call so far, for each resource. */
const turns = new WeakMap<Marks, Map<string, Promise<void>>>()

/**
 * Checks the token and runs `work`, one call at a time for each resource. So the check and the write are atomic among all
 * calls with the same `marks` object. Other calls wait until `work` has settled, so give it a time limit. Rejects
 * `STALE_TOKEN` if a newer holder was seen, with the error of `work`, or with the reason of `signal`.
 *
 * Not promised: protection from other processes that write to the same data.
 */
export function inTurn<T>(fence: RequestFence, marks: Marks, work: () => PromiseLike<T>): Promise<T>
export function inTurn<T>(
  fence: RequestFence,
  marks: Marks,
  options: FenceCallOptions | undefined,
  work: () => PromiseLike<T>,
): Promise<T>
export async function inTurn<T>(
  fence: RequestFence,
  marks: Marks,
  ...args: WorkArguments<FenceCallOptions, void, T>
): Promise<T> {
  const { options, work } = workOf('inTurn(fence, marks', args)
  const signal = signalOf(options, 'inTurn')
  const ends = turns.get(marks) ?? new Map<string, Promise<void>>()
  turns.set(marks, ends)
  const before = ends.get(fence.name)
  const turn = abortable(async () => before, signal).then(async () => {
    await marks.raise(fence.name, fence, signal)
    return work()
  })
  // If a call stops waiting, later calls must still wait for the earlier ones.
  const end = Promise.allSettled([before, turn]).then(() => {
    if (ends.get(fence.name) === end) ends.delete(fence.name)
  })
  ends.set(fence.name, end)
  return await turn
}
