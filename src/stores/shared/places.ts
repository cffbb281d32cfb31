import { gateName, partOf } from '../../contract/reserved.ts'
import type { Claim, Wake } from '../../contract/store.ts'
import { type Keeper, LocalQueue, type State } from './local-queue.ts'
import { placeLifetime } from './queue.ts'

/**
 * Keeps the positions of the waiters of this process, all those on one name by one request, and wakes the first of them
 * when the name may be free. So a waiter costs no request of its own.
 */
export class Places {
  readonly #keeper: Keeper
  readonly #queues = new Map<string, LocalQueue>()
  /** What claims were told that are not watched yet. */
  readonly #told = new WeakMap<Claim, State>()
  /** By gate, the id of the claim that holds it and waits for slots, until it is woken. */
  readonly #entered = new Map<string, string>()
  readonly #notify: (id: string) => void

  constructor(keeper: Keeper, notify: (id: string) => void) {
    this.#keeper = keeper
    this.#notify = notify
  }

  /** A claim was told that it must wait. */
  told(claim: Claim, state: State): void {
    const queue = this.#queues.get(claim.name)
    queue?.refused(claim.id)
    queue?.learn(state)
    if (!queue?.has(claim.id)) this.#told.set(claim, state)
  }

  /** A claim of this process holds the name for `ttl` ms. */
  granted({ name, id, ttl }: Claim): void {
    this.remove(name, id)
    this.#queues.get(name)?.learn({ freeAt: performance.now() + ttl, rank: Number.POSITIVE_INFINITY })
  }

  /**
   * Until `signal` aborts, keeps the position of the claim and wakes it when it should ask. Does not listen to `signal`,
   * which would take 300 bytes: a claim that ends is granted or removed, and others are left out when the next is due.
   */
  add(claim: Claim, wake: Wake, signal: AbortSignal): void {
    const { name, id, ttl } = claim
    if (signal.aborted) return
    const state = this.#told.get(claim)
    this.#told.delete(claim)
    let queue = this.#queues.get(name)
    if (!queue) {
      queue = new LocalQueue(name, this.#keeper, () => this.#queues.delete(name))
      this.#queues.set(name, queue)
    }
    queue.add({ id, lifetime: placeLifetime(ttl), wake, signal }, state)
  }

  /** The claim holds the gate, and waits for slots. */
  entered(gate: Claim): void {
    this.granted(gate)
    this.#entered.set(gate.name, gate.id)
  }

  /** The claim does not wait any more. Returns whether it had a position. */
  remove(name: string, id: string): boolean {
    if (this.#entered.get(name) === id) this.#entered.delete(name)
    return this.#queues.get(name)?.remove(id) === true
  }

  /** To be called when this process releases the name: wakes a waiter for it, so that its request shares the call. */
  prompt(name: string, id: string): void {
    if (this.#queues.size + this.#entered.size === 0) return
    const gate = gateName(partOf(name).name)
    if (this.#entered.get(gate) === id) return // it ends, and frees the gate after the slots for which it waited
    if (!this.#wakeEntered(gate)) (this.#queues.get(name) ?? this.#queues.get(gate))?.prompt()
  }

  /** Messages to waiters for the name may be lost, other than to those that are `asking` and will ask again. */
  missed(name: string, asking: ReadonlySet<string>): void {
    this.#queues.get(name)?.missed(asking)
    this.#wakeEntered(gateName(partOf(name).name))
  }

  close(): void {
    for (const queue of this.#queues.values()) queue.close()
  }

  /** Wakes the claim that holds the gate and waits for slots. Returns whether there is one. */
  #wakeEntered(gate: string): boolean {
    const id = this.#entered.get(gate)
    if (id !== undefined) this.#notify(id)
    return this.#entered.delete(gate)
  }
}
