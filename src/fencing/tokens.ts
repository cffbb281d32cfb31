import { presentedByAll } from '../fencing/fence.ts'
import { writeToken } from '../fencing/shown.ts'
import type { Lease, LeaseSet, Permit } from '../index.ts'

/** What a fence compares, by resource: the token of each name, that of a permit with its limit and slots. */
export function tokensOf(held: Lease | Permit | LeaseSet): Readonly<Record<string, string>> {
  const leases = 'leases' in held ? held.leases : [held]
  const shown = leases.flatMap(lease => presentedByAll({ ...lease }, {}))
  return Object.fromEntries(shown.map(({ resource, mark }) => [resource, writeToken(mark)]))
}
