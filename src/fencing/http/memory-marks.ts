import { checkKeys, invalid, show } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { compareMarks, type Mark, type Marks, staleToken } from '../mark.ts'

export interface MemoryMarksOptions {
  /**
   * The number of resources. Without the option `resource` of the fence, clients choose the names, so the number needs a
   * limit. No mark is evicted: further resources are refused. @default 100,000
   */
  readonly limit?: number | undefined
}

/**
 * Marks in the memory of this process. For tests, and for a single service whose data is in memory too. After a restart
 * an older holder can write again. `raise` rejects `STORE_UNAVAILABLE` for more than `limit` resources.
 * @throws LeaseError INVALID_ARGUMENT
 */
export function memoryMarks(options: MemoryMarksOptions = {}): Marks {
  checkKeys(options, new Set(['limit']), 'memoryMarks')
  const { limit = 100_000 } = options
  if (!(limit >= 1)) throw invalid(`the limit of marks must be a number, 1 or more, not ${show(limit)}`)
  const marks = new Map<string, Mark>()
  return {
    async raise(resource, mark, signal) {
      signal?.throwIfAborted()
      const highest = marks.get(resource)
      if (highest && compareMarks(mark, highest) < 0) throw staleToken(resource, mark, highest)
      if (!highest && marks.size >= limit) throw full(limit)
      marks.set(resource, { epoch: mark.epoch, token: mark.token })
    },
  }
}

function full(limit: number): LeaseError {
  const cure = 'set the option resource of the fence, or raise the limit'
  return new LeaseError('STORE_UNAVAILABLE', `memoryMarks has reached its limit of ${limit} resources: ${cure}`, {
    retryable: false,
  })
}
