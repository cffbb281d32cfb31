import { checkName, checkTtl, invalid } from '../contract/check.ts'
import type { Lease } from '../contract/lease.ts'
import { randomId } from '../contract/random-id.ts'
import { request } from '../contract/request.ts'
import type { Claim } from '../contract/store.ts'
import { type Clock, LONGEST_TRY, requestLimit, systemClock } from '../contract/time.ts'
import type { Locks } from '../create-locks.ts'

/** What `Ticks` needs of locks. */
export type TickLocks = Pick<Locks, 'store' | 'tryAcquire'> & { assertOpen?(): void }

/**
 * Decides which replica runs one tick of a schedule. A mark is a claim that nobody renews or releases, so it outlives the
 * run: the timer of a replica whose clock is behind finds it. Marks do not go through the locks. There each would be a
 * lease that ends as lost, and `close()` would wait for it.
 */
export class Ticks {
  readonly #locks: TickLocks
  readonly #clock: Clock = systemClock()

  constructor(locks: TickLocks) {
    this.#locks = locks
  }

  /**
   * True for one replica within `keep` ms. Rejects `INVALID_ARGUMENT`, `STORE_UNAVAILABLE`, and `OUTCOME_UNKNOWN`, after
   * which the mark may or may not be set.
   */
  async mark(name: string, keep: number): Promise<boolean> {
    return (await this.#mark(name, keep)) !== undefined
  }

  /**
   * Sets the mark, and acquires `name` for the run. `undefined`: another replica has set the mark, or the run before goes
   * on somewhere. Rejects as `mark` and as `tryAcquire`; the mark is withdrawn then if the store answers.
   */
  async begin(name: string, mark: string, keep: number): Promise<Lease | undefined> {
    const claim = await this.#mark(mark, keep)
    if (!claim) return undefined
    try {
      return await this.#locks.tryAcquire(name)
    } catch (error) {
      await this.#withdraw(claim)
      throw error
    }
  }

  async #mark(name: string, ttl: number): Promise<Claim | undefined> {
    const { store } = this.#locks
    this.#locks.assertOpen?.() // a replica that ends must not take the tick from the others
    checkName(name)
    const what = 'the time for which a tick is remembered'
    const { longestUnattended: longest = Number.POSITIVE_INFINITY } = store.guarantees ?? {}
    if (ttl > longest)
      throw invalid(
        longest > 0
          ? `${what} is ${ttl} ms, but ${store.kind} keeps a lease without its process for at most ${longest} ms`
          : `${store.kind} keeps no lease without its process, so it cannot remember a tick: use another store`,
      )
    checkTtl(ttl, store, what)
    const note = 'this tick has been taken; nobody renews this lease'
    const claim: Claim = { name, id: randomId(), owner: 'schedule', ttl, note, queue: false }
    const limit = Math.min(LONGEST_TRY, requestLimit(ttl, store.guarantees?.acquireShare))
    try {
      const answer = await request(this.#clock, limit, signal => store.acquire(claim, signal))
      return answer.held ? claim : undefined
    } catch (error) {
      await this.#withdraw(claim) // it may have been granted
      throw error
    }
  }

  /** Never rejects: a mark that stays ends with its term. */
  async #withdraw(claim: Claim): Promise<void> {
    await request(this.#clock, LONGEST_TRY, signal => this.#locks.store.release(claim, signal)).catch(() => {})
  }
}
