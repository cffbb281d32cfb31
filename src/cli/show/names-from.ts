import type { Readable } from '../../dashboard/reader.ts'

/** What a survey needs from the locks, limited to the names that begin with the prefix. */
export function namesFrom(locks: Readable, prefix: string): Readable {
  return { list: (_, pacing) => locks.list(prefix, pacing), inspect: name => locks.inspect(name) }
}
