import { invalid } from '../../contract/check.ts'

// biome-ignore lint/suspicious/noExplicitAny: a decorator fits methods of all types
export type Method = (this: any, ...parameters: any[]) => unknown

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
