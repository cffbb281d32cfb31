import type { Lease, LeaseSet, Permit } from '../../index.ts'

/** What is held while a command runs: one lease, one permit, or several leases together. */
export type Held = Lease | Permit | LeaseSet

/** All leases that are held. The lease on NAME comes first. */
export function leasesOf(held: Held): readonly [Lease, ...Lease[]] {
  return ('leases' in held ? held.leases : [held]) as [Lease, ...Lease[]]
}

/** The held names as a text for people. */
export function namesOf(held: Held): string {
  return leasesOf(held)
    .map(({ name }) => name)
    .join(', ')
}
