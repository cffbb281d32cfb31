import { MarksFile } from '../../src/fencing/files/marks-file.ts'
import type { Marks } from '../../src/fencing/mark.ts'

/** Marks that outlive the process. */
export function fileMarks(path: string): Marks {
  const file = new MarksFile(path)
  return {
    async raise(resource, mark, signal) {
      await file.patiently(() => file.raise(resource, mark), 5_000, signal)
    },
  }
}
