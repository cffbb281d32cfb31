import { presentedByAll } from './fence.ts'
import type { Holder, Holders } from './mark.ts'
import { writeToken } from './shown.ts'

/** The tokens that a fence compares, as text, by resource. The token of a permit includes its limit and slots. */
export function tokensOf(held: Holder | Holders): Readonly<Record<string, string>> {
  const leases = 'leases' in held ? held.leases : [held]
  // Use copies, because a lease that is over would be refused.
  const shown = leases.flatMap(lease => presentedByAll({ ...lease }, {}))
  return Object.fromEntries(shown.map(({ resource, mark }) => [resource, writeToken(mark)]))
}
