import { invalid } from './contract/check.ts'
import type { Lease } from './contract/lease.ts'
import { surroundings } from './contract/surrounding.ts'

const storage = surroundings()

/**
 * The lease under which this code runs: that of the innermost `using`, `tryUsing`, `once` or term of `election.run` around
 * it, also after `await` and in functions that the work calls. `undefined` outside of them.
 *
 *     const lease = currentLease(`order:${id}`) // undefined: the caller has no lease on this order
 *
 * With `name` it is the innermost lease on that name, which may be one of a set, or further out. Without it, a set of
 * several leases throws `INVALID_ARGUMENT`. A permit, reader or writer is returned like a lease. After the lease has ended
 * it is still returned, and `assertHeld()` throws.
 *
 * Work that began before this module was imported has no lease here.
 */
export function currentLease(name?: string): Lease | undefined {
  for (let around = storage.getStore(); around; around = around.outer) {
    const { handle } = around
    const leases = leasesOf(handle as Lease | { readonly leases: readonly Lease[] })
    const [lease, other] = name === undefined ? leases : leases.filter(each => each.name === name)
    if (other)
      throw invalid(
        `this code runs under ${leases.length} leases: name one, as in currentLease(${JSON.stringify(lease?.name)})`,
      )
    if (lease) return lease
  }
  return undefined
}

function leasesOf(handle: Lease | { readonly leases: readonly Lease[] }): readonly Lease[] {
  return 'leases' in handle ? handle.leases : [handle]
}
