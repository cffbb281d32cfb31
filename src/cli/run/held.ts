import type { Lease, LeaseSet, Permit } from '../../index.ts'

/** What a command runs under: one lease, one permit, or several leases that are held together. */
export type Held = Lease | Permit | LeaseSet

/** The lease on NAME comes first. */
export function leasesOf(held: Held): readonly [Lease, ...Lease[]] {
  return ('leases' in held ? held.leases : [held]) as [Lease, ...Lease[]]
}

/** For people. */
export function namesOf(held: Held): string {
  return leasesOf(held)
    .map(({ name }) => name)
    .join(', ')
}
