import { Inject } from '@nestjs/common'
import { invalid } from '../../contract/check.ts'
import type { Locks } from '../../create-locks.ts'
import { type Method, methodOf, replace } from './method.ts'
import { LOCKS } from './token.ts'

/** Nest sets this property of each object that has a method with `@UseLease`. */
const locksOf = Symbol('locks of @UseLease')

/**
 * Runs a method of a Nest provider or controller under a lease, as `locks.using` does: it waits for the name, and releases
 * it when the method's promise is settled. The method then returns a promise. `name` may be a function of the parameters.
 * `currentLease()` of `holdfast/current-lease` is the lease. Write it below the other decorators of the method, and
 * compile with `experimentalDecorators`.
 *
 * The method throws what it throws, and rejects as `using` does: `BUSY`, `LEASE_LOST`, `MAX_HOLD`, `CLOSED`,
 * `STORE_UNAVAILABLE`, `OUTCOME_UNKNOWN`, `INVALID_ARGUMENT`.
 *
 *     @UseLease('invoices', { wait: 5_000 })
 */
export function UseLease(
  // biome-ignore lint/suspicious/noExplicitAny: the parameters of the method
  name: string | ((...parameters: any[]) => string),
  options: Parameters<Locks['acquire']>[1] = {},
): MethodDecorator {
  return (target, key, descriptor) => {
    const method = methodOf(descriptor, '@UseLease')
    Inject(LOCKS)(target, locksOf)
    const wrapped: Method = async function (...parameters) {
      const locks = (this as { [locksOf]?: Locks })[locksOf]
      if (!locks) throw invalid(`@UseLease: Nest did not make the object of ${String(key)}, or LeaseModule is missing`)
      const leased = typeof name === 'function' ? name(...parameters) : name
      return locks.using(leased, options, async () => method.apply(this, parameters))
    }
    replace(descriptor, method, wrapped)
  }
}
