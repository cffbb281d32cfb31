import type { Locks } from '../../index.ts'

/** What a survey needs of the locks, for the names that begin with the prefix. */
export function namesFrom(locks: Locks, prefix: string): Pick<Locks, 'list' | 'inspect'> {
  return { list: (_, options) => locks.list(prefix, options), inspect: name => locks.inspect(name) }
}
