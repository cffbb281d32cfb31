import { presentedByAll } from './fence.ts'
import type { Holder, Holders } from './mark.ts'
import { writeToken } from './shown.ts'

/** What a fence compares, by resource, in text: the token of each name, that of a permit with its limit and slots. */
export function tokensOf(held: Holder | Holders): Readonly<Record<string, string>> {
  const leases = 'leases' in held ? held.leases : [held]
  // Of copies, because a lease that is over would be refused.
  const shown = leases.flatMap(lease => presentedByAll({ ...lease }, {}))
  return Object.fromEntries(shown.map(({ resource, mark }) => [resource, writeToken(mark)]))
}
