import { checkKeys, invalid, show } from '../../contract/check.ts'
import { LeaseError } from '../../contract/errors.ts'
import { compareMarks, type Mark, type Marks, staleToken } from '../mark.ts'

export interface MemoryMarksOptions {
  /**
   * How many resources are remembered. Without the option `resource` of the fence, clients choose their names, so they need
   * a limit. None is ever forgotten: further ones are refused. @default 100,000
   */
  readonly limit?: number | undefined
}

/**
 * Marks of one process, which end with it: for tests, and for a service that is the only one to write and whose data is
 * in memory too. After a restart, an older holder than the last may write again. `raise` of one resource more than
 * `limit` rejects `STORE_UNAVAILABLE`.
 * @throws LeaseError INVALID_ARGUMENT
 */
export function memoryMarks(options: MemoryMarksOptions = {}): Marks {
  checkKeys(options, new Set(['limit']), 'memoryMarks')
  const { limit = 100_000 } = options
  if (!(limit >= 1)) throw invalid(`the limit of marks must be a number from 1, not ${show(limit)}`)
  const marks = new Map<string, Mark>()
  return {
    async raise(resource, mark, signal) {
      signal?.throwIfAborted()
      const highest = marks.get(resource)
      if (highest && compareMarks(mark, highest) < 0) throw staleToken(resource, mark, highest)
      if (!highest && marks.size >= limit) throw full(limit)
      marks.set(resource, { lineage: mark.lineage, token: mark.token })
    },
  }
}

function full(limit: number): LeaseError {
  const cure = 'set the option resource of the fence, or a higher limit'
  return new LeaseError('STORE_UNAVAILABLE', `memoryMarks has reached its limit of ${limit} resources: ${cure}`, {
    retryable: false,
  })
}
