import { inspect } from 'node:util'
import type { LeaseEnd } from '../contract/lease.ts'
import type { Held } from './held.ts'

/**
 * What a lease and a set of leases have in common for their user. It passes every call on to what is held. The verbs are
 * accessors, so that they can be destructured, as in `const { release } = lease`. A lease that is not destructured pays
 * nothing for that.
 */
export abstract class Handle implements AsyncDisposable {
  readonly #held: Held

  constructor(held: Held) {
    this.#held = held
  }

  get signal(): AbortSignal {
    return this.#held.signal
  }

  get remaining(): number {
    return this.#held.remaining
  }

  get ended(): Promise<LeaseEnd> {
    return this.#held.ended
  }

  get assertHeld(): () => void {
    return verb(this, handle => handle.#held.assertHeld())
  }

  get extend(): (ttl?: number) => Promise<number> {
    return verb(this, (handle, ttl) => handle.#held.extend(ttl))
  }

  get release(): () => Promise<LeaseEnd> {
    return verb(this, handle => handle.#held.release())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  abstract toJSON(): Record<string, unknown>
}

/**
 * Makes a method that knows its handle. A spy of Vitest reads the accessor without a handle, and calls the result as an
 * ordinary method.
 */
export function verb<This, Parameters extends unknown[], Result>(
  handle: This,
  call: (handle: This, ...parameters: Parameters) => Result,
): (...parameters: Parameters) => Result {
  return function (this: This, ...parameters) {
    return call(handle ?? this, ...parameters)
  }
}

// Otherwise Node would not print `remaining`, which is an accessor.
Object.defineProperty(Handle.prototype, inspect.custom, {
  value(this: Handle) {
    return this.toJSON()
  },
})
