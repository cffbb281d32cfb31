import { inRootContext } from '../../contract/root-context.ts'
import type { Wake } from '../../contract/store.ts'
import { requestLimit } from '../../contract/time.ts'
import { positionLifetime, type Wakes } from '../rules/name.ts'
import { FollowedName } from './followed-name.ts'
import { secondsOf } from './keys.ts'
import type { KnownName, Lost } from './known-name.ts'
import type { RangeAnswer } from './messages.ts'
import type { Parts } from './parts.ts'
import { PositionLeases } from './position-leases.ts'
import { isPassed, secondsAsked } from './record.ts'
import { adopt, leaveQueue } from './txn.ts'
import { type View, wakesOf } from './view.ts'

/** Milliseconds for which the watch of a name stays open after the last waiter of this process has left. */
const LINGER = 2_000

/** The share of a position's lifetime after which a waiter has stopped asking, if it is not watched and has not asked. */
const SILENT = 2 / 3

/**
 * The claims of this process that wait for one name. One watch serves all of them, because over HTTP/1.1 each watch is a
 * connection. The queue wakes a waiter when the rules would grant it the name. It also keeps the positions of all waiters
 * that are watched or ask by themselves.
 */
export class Queue {
  readonly waiters: Map<string, Waiter> = new Map()
  readonly leases: PositionLeases
  readonly #name: string
  readonly #parts: Parts
  readonly #followed: FollowedName
  readonly #wakes = new Map<string, Wake>()
  /** The waiters that were woken, each with the state of the name for which it was. */
  readonly #woken = new Map<string, string>()
  readonly #lingering: NodeJS.Timeout
  /** The timer until the next waiter of this process may pass the first. */
  #turn: NodeJS.Timeout | undefined
  /** The timer until the positions must be kept. */
  #keeping: NodeJS.Timeout | undefined
  #keepAt = Number.POSITIVE_INFINITY
  #isOver = false
  /** The number of claims that join now. */
  #joining = 0

  /** `onEnd` is called when nobody has waited for some time. The queue is not used again. */
  constructor(name: string, parts: Parts, onEnd: () => void) {
    this.#name = name
    this.#parts = parts
    this.#followed = new FollowedName(name, parts, lost => this.#changed(lost))
    this.leases = new PositionLeases(parts.leases, parts.clock)
    const look = (): void => {
      if (this.waiters.size > 0 || this.#wakes.size > 0 || this.#joining > 0) return
      this.end()
      onEnd()
    }
    this.#lingering = inRootContext(() => setInterval(look, LINGER)).unref()
  }

  get known(): KnownName {
    return this.#followed.known
  }

  get isReady(): boolean {
    return this.#followed.isReady
  }

  /** Did the watch report other claims that a claim of this limit must wait for? */
  isBusy(limit: number): boolean {
    return this.waiters.size > 0 || (this.isReady && this.known.isBusy(limit))
  }

  /**
   * The state of the name as the watch has reported it. `undefined`: this position is not known here, so ask the server.
   */
  view(id: string, revision: string): View | undefined {
    if (!this.isReady || this.known.positions.get(id)?.found.create_revision !== revision) return undefined
    return this.known.view(each => each === id)
  }

  /** See `FollowedName.agrees`. */
  agrees(limit: number): Promise<boolean> {
    return this.#followed.agrees(limit)
  }

  /** The queue does not end while a claim joins it: that would revoke the lease of its position. */
  async whileJoining<Answer>(join: () => Promise<Answer>): Promise<Answer> {
    this.#joining += 1
    try {
      return await join()
    } finally {
      this.#joining -= 1
    }
  }

  /** Adds a waiter. `read`: all keys of the name, with this position. */
  join(id: string, waiter: Waiter, read?: Pick<RangeAnswer, 'header' | 'kvs'>): void {
    this.waiters.set(id, waiter)
    this.#keepWithin(positionLifetime(waiter.ttl) / 3)
    this.#followed.open(read).catch(() => {}) // `watch` rejects with the same error
  }

  /** The claim holds, was withdrawn, or is about to join again. Its watch ends by its own signal. */
  leave(id: string): Waiter | undefined {
    const waiter = this.waiters.get(id)
    this.waiters.delete(id)
    return waiter
  }

  /** Resolves once the watch is open. From then until `signal` aborts, `wake` is called as a hint. */
  async watch(id: string, wake: Wake, signal: AbortSignal): Promise<void> {
    this.#wakes.set(id, wake)
    this.#keepWithin(positionLifetime(Number.POSITIVE_INFINITY) / 3)
    const forget = (): void => {
      if (this.#wakes.get(id) === wake) this.#wakes.delete(id)
    }
    signal.addEventListener('abort', forget, { once: true })
    try {
      await this.#followed.open()
    } catch (error) {
      forget()
      throw error
    }
    if (signal.aborted) forget()
    this.#woken.delete(id)
    if (this.#isLost(id)) wake()
    this.#wakeNext()
  }

  end(): void {
    this.#isOver = true
    clearInterval(this.#lingering)
    for (const timer of [this.#turn, this.#keeping]) clearTimeout(timer)
    this.#followed.end()
    this.#wakes.clear()
    this.leases.end()
  }

  #changed(lost: readonly Lost[]): void {
    for (const { id, revision } of lost) if (this.waiters.get(id)?.revision === revision) this.#wakes.get(id)?.()
    this.#wakeNext()
  }

  /** Did the position end before somebody listened, or before the answer to the join? */
  #isLost(id: string): boolean {
    const { revision } = this.waiters.get(id) ?? {}
    if (revision === undefined || !this.isReady || this.known.revision < BigInt(revision)) return false
    return this.known.positions.get(id)?.found.create_revision !== revision
  }

  /** Wakes the waiters of this process that the rules would grant the name, at the time when they would. */
  #wakeNext(): void {
    clearTimeout(this.#turn)
    if (this.#isOver || this.#wakes.size === 0) return
    let counted = 0
    const view = this.known.view((_, found) => !isPassed(found) && ++counted === 2)
    // This waiter lives, and does not know that it was passed.
    for (const found of view.waiters)
      if (isPassed(found)) this.#wake(this.#parts.keys.parse(found.key).id, found.mod_revision)
    for (const [rank, [id, delay]] of [...this.#due(view)].entries()) {
      if (delay <= 0) this.#wake(id, `${view.changed} ${rank}`)
      else if (this.#wakes.has(id)) this.#turn = setTimeout(() => this.#wakeNext(), delay).unref()
    }
  }

  /** The waiters to wake. If another version of this package wrote something, all waiters ask and find that out. */
  #due(view: View): Wakes {
    try {
      return wakesOf(view, this.#parts.clock.now())
    } catch {
      return new Map([...this.#wakes.keys()].map(id => [id, 0]))
    }
  }

  /** Wakes a waiter only once for each `state`. */
  #wake(id: string, state: string): void {
    const wake = this.#wakes.get(id)
    if (!wake || this.#woken.get(id) === state) return
    this.#woken.set(id, state)
    wake()
  }

  #keepWithin(delay: number): void {
    const at = this.#parts.clock.now() + delay
    if (at >= this.#keepAt || this.#isOver) return
    clearTimeout(this.#keeping)
    this.#keepAt = at
    this.#keeping = inRootContext(() => setTimeout(() => void this.#keep(), delay)).unref()
  }

  /** Keeps all positions, and finds out whether the watch still reports changes. */
  async #keep(): Promise<void> {
    this.#keepAt = Number.POSITIVE_INFINITY
    this.#dropSilent()
    if (this.waiters.size + this.#wakes.size === 0) return
    const ttls = new Set([...this.waiters.values()].map(({ ttl }) => secondsOf(ttl) * 1_000))
    const shortest = positionLifetime(Math.min(...[...this.waiters.values()].map(({ ttl }) => ttl)))
    this.#keepWithin(shortest / 3)
    try {
      const keeping = [this.leases.keep(), ...[...ttls].map(ttl => this.#parts.leases.reserve(ttl))]
      await Promise.all([...keeping, this.agrees(requestLimit(shortest))])
      for (const [id, waiter] of this.waiters) if (this.#wakes.has(id)) this.#keepPosition(id, waiter)
    } catch {
      // The waiters ask, and find out the reason.
      for (const wake of [...this.#wakes.values()]) wake()
    }
    for (const [id, wake] of [...this.#wakes]) if (!this.waiters.has(id)) wake() // it may not have accepted its grant
    this.#woken.clear()
    this.#wakeNext()
  }

  #keepPosition(id: string, { lease, revision }: Waiter): void {
    const { gateway, keys } = this.#parts
    const { found } = this.known.positions.get(id) ?? {}
    if (!this.leases.has(lease) || this.#isLost(id)) this.#wakes.get(id)?.()
    // Another process has asked for this position, but it is watched here.
    else if (found && found.create_revision === revision && found.lease !== lease)
      gateway.txn(adopt(keys.position(this.#name, id), revision, lease)).catch(() => {}) // it is tried again
  }

  /**
   * Deletes positions on leases of this process that no waiter asks for, such as the position of a request that arrived
   * late.
   */
  #dropSilent(): void {
    const now = this.#parts.clock.now()
    for (const [id, { revision, lease, ttl, askedAt }] of this.waiters) {
      if (this.#wakes.has(id) || now <= askedAt + positionLifetime(ttl) * SILENT) continue
      this.leave(id)
      this.#drop(id, revision, lease)
    }
    for (const [id, { found, seenAt }] of this.known.positions) {
      const { lease, create_revision } = found
      if (this.waiters.has(id) || !lease || !this.leases.has(lease)) continue
      if (now > seenAt + positionLifetime(secondsAsked(found) * 1_000) * SILENT) this.#drop(id, create_revision, lease)
    }
  }

  #drop(id: string, revision: string, lease: string): void {
    const { gateway, keys } = this.#parts
    gateway.txn(leaveQueue(keys.position(this.#name, id), revision, lease)).catch(() => {}) // it is tried again, or lapses
  }
}

/** A claim of this process in the queue of a name. */
export interface Waiter {
  /** The create revision of its key in the queue, and the lease of that key. */
  readonly revision: string
  readonly lease: string
  readonly ttl: number
  askedAt: number
  /** Was a request that may have acquired the name left without an answer? */
  mayHold: boolean
}
