import { LeaseError } from '../contract/errors.ts'

/** Counts the calls over one store that wait for each name. */
export class Waiters {
  readonly #counts = new Map<string, number>()

  /** Throws `TOO_MANY_WAITERS` if `most` calls wait for `name`. */
  check(name: string, most: number): void {
    if ((this.#counts.get(name) ?? 0) < most) return
    const message = `maxWaiters is ${most}, and as many calls already wait for ${JSON.stringify(name)}: try later, or raise it`
    throw new LeaseError('TOO_MANY_WAITERS', message, { leaseName: name, waited: 0 })
  }

  /** Counts a call. Throws as `check`. */
  add(name: string, most: number): void {
    this.check(name, most)
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
  }

  remove(name: string): void {
    const left = (this.#counts.get(name) ?? 0) - 1
    if (left > 0) this.#counts.set(name, left)
    else this.#counts.delete(name)
  }
}
