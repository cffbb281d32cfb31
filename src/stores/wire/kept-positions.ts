import type { Claim, Wake } from '../../contract/store.ts'
import type { Clock } from '../../contract/time.ts'
import { positionLifetime } from '../rules/name.ts'
import { type Keeper, LocalQueue, type State } from './local-queue.ts'

/**
 * Keeps the positions of the waiters of this process, with one request for all waiters for a name. Wakes the first of them
 * when the name may be free. So a waiter needs no request of its own. A claim is kept as long as it is watched, whatever it
 * is granted meanwhile. A claim without a position at the server is woken when the next request finds that out.
 */
export class KeptPositions {
  readonly #clock: Clock
  readonly #keeper: Keeper
  readonly #queues = new Map<string, LocalQueue>()
  /** What the server last said about a claim, for claims that are not watched yet. */
  readonly #told = new WeakMap<Claim, State>()

  constructor(clock: Clock, keeper: Keeper) {
    this.#clock = clock
    this.#keeper = keeper
  }

  /** The server said that a claim must wait. */
  told(claim: Claim, state: State): void {
    const queue = this.#queues.get(claim.name)
    queue?.refused(claim.id)
    queue?.learn(state)
    if (!queue?.has(claim.id)) this.#told.set(claim, state)
  }

  /** A claim of this process was granted the name. The next claim may be granted in `remaining` ms if nothing is freed. */
  granted({ name, id, ttl }: Claim, remaining: number = ttl): void {
    const queue = this.#queues.get(name)
    queue?.granted(id)
    queue?.learn({ grantAt: this.#clock.now() + remaining, rank: Number.POSITIVE_INFINITY })
  }

  /** Keeps the position of the claim until `remove`, and wakes the claim when it should ask. */
  add(claim: Claim, wake: Wake): void {
    const { name, id, ttl } = claim
    const state = this.#told.get(claim)
    this.#told.delete(claim)
    let queue = this.#queues.get(name)
    if (!queue) {
      queue = new LocalQueue(name, this.#clock, this.#keeper, () => this.#queues.delete(name))
      this.#queues.set(name, queue)
    }
    queue.add({ id, lifetime: positionLifetime(ttl), wake }, state)
  }

  /** Stops keeping the position. Call it when the watch of the claim ends, and not before. */
  remove({ name, id }: Claim, wake: Wake): void {
    this.#queues.get(name)?.remove(id, wake)
  }

  /** Is the claim watched? If it is, it probably does not hold. */
  watches(name: string, id: string): boolean {
    return this.#queues.get(name)?.has(id) === true
  }

  /** Wakes a waiter for the name, so that its request shares the call. Call it when this process releases the name. */
  prompt(name: string): void {
    this.#queues.get(name)?.prompt()
  }

  /** Messages to waiters for the name may be lost, except to waiters that are `asking` and will ask again. */
  missed(name: string, asking: ReadonlySet<string>): void {
    this.#queues.get(name)?.missed(asking)
  }

  /** Wakes all waiters. They ask, and find the store closed. */
  close(): void {
    for (const queue of this.#queues.values()) queue.close()
  }
}
