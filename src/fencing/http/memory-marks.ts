import { compareMarks, type Mark, type Marks, staleToken } from '../mark.ts'

/**
 * Marks of one process, which end with it: for tests, and for a service that is the only one to write and whose data is
 * in memory too. Behind a restart, an older holder than the last may write again.
 */
export function memoryMarks(): Marks {
  const marks = new Map<string, Mark>()
  return {
    async raise(resource, mark, signal) {
      signal?.throwIfAborted()
      const highest = marks.get(resource)
      if (highest && compareMarks(mark, highest) < 0) throw staleToken(resource, mark, highest)
      marks.set(resource, { lineage: mark.lineage, token: mark.token })
    },
  }
}
