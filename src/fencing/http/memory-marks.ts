import { checkKeys, invalid, show } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { type Mark, type Marks, staleToken } from '../mark.ts'
import { judge } from '../rule.ts'

export interface MemoryMarksOptions {
  /**
   * The most marks: one for each resource, and one for each slot that permits presented. Clients may choose the names of
   * resources, so the number needs a limit. No mark is evicted: further ones are refused. @default 100,000
   */
  readonly maxMarks?: number | undefined
}

/**
 * Marks in the memory of this process. Use them in tests, or in a single service whose data is in memory too. After a
 * restart an older holder can write again. `raise` rejects `STORE_UNAVAILABLE` if it needs more than `maxMarks` marks.
 * @throws LeaseError INVALID_ARGUMENT
 */
export function memoryMarks(options: MemoryMarksOptions = {}): Marks {
  checkKeys(options, new Set(['maxMarks']), 'memoryMarks')
  const { maxMarks = 100_000 } = options
  if (!(maxMarks >= 1)) throw invalid(`maxMarks must be a number, 1 or more, not ${show(maxMarks)}`)
  const resources = new Map<string, Map<string, Mark>>()
  let count = 0
  return {
    async raise(resource, shown, signal) {
      signal?.throwIfAborted()
      const marks = resources.get(resource) ?? new Map<string, Mark>()
      const judged = judge(marks, shown)
      if ('highest' in judged) throw staleToken(resource, shown, judged.highest)
      const added = [...judged.raised.keys()].filter(key => !marks.has(key)).length
      if (added > 0 && count + added > maxMarks) throw full(maxMarks)
      count += added
      resources.set(resource, marks)
      for (const [key, mark] of judged.raised) marks.set(key, mark)
    },
  }
}

function full(limit: number): LeaseError {
  const cure = 'set the option resource of the fence, or raise maxMarks'
  return new LeaseError('STORE_UNAVAILABLE', `memoryMarks has reached its limit of ${limit} marks: ${cure}`, {
    retryable: false,
  })
}
