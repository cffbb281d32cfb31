import { AsyncLocalStorage } from 'node:async_hooks'
import { invalid } from '../../contract/check.ts'
import type { Lease } from '../../contract/lease.ts'

// biome-ignore lint/suspicious/noExplicitAny: a decorator fits methods of all types
export type Method = (this: any, ...parameters: any[]) => unknown

const leases = new AsyncLocalStorage<Lease>()

/** The lease of the innermost `@UseLease` or `@LeaseCron` method in progress. `undefined` outside of one. */
export function currentLease(): Lease | undefined {
  return leases.getStore()
}

/** Runs work, in which `currentLease()` is the lease. */
export function runUnder<T>(lease: Lease, work: () => T): T {
  return leases.run(lease, work)
}

/** The method that is decorated. Throws `INVALID_ARGUMENT`. */
export function methodOf(descriptor: PropertyDescriptor | undefined, decorator: string): Method {
  const method: unknown = descriptor?.value
  if (typeof method !== 'function')
    throw invalid(`${decorator} decorates methods, compiled with experimentalDecorators of TypeScript`)
  return method as Method
}

/** Decorators below have left their metadata on the method: routes, guards, schedules. The new method has them too. */
export function replace(descriptor: PropertyDescriptor, method: Method, by: Method): void {
  Object.defineProperty(by, 'name', { value: method.name, configurable: true })
  for (const key of Reflect.getMetadataKeys(method)) Reflect.defineMetadata(key, Reflect.getMetadata(key, method), by)
  descriptor.value = by
}
