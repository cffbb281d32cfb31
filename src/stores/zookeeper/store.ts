import type {
  BreakParameters,
  Busy,
  Claim,
  ClaimKey,
  Grant,
  Guarantees,
  LeaseRecord,
  Query,
  Store,
  Wake,
} from '../../contract/store.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import { closed } from '../wire/failure.ts'
import { Waiters } from '../wire/waiters.ts'
import { Acquisition } from './acquisition.ts'
import { annotate } from './annotate.ts'
import { breakLease } from './break.ts'
import { Expired, failure } from './failure.ts'
import { GracePeriods } from './grace-periods.ts'
import { Groups } from './groups.ts'
import { guaranteesOf } from './guarantees.ts'
import { heldBy, leaseOf, lookAt, namesFrom } from './inspection.ts'
import { Keeper } from './keeper.ts'
import type { Asked } from './position.ts'
import { MAX_ATTEMPTS, tooManyChanges } from './retries.ts'
import type { Settings } from './settings.ts'

/** The number of parents that one request of `inspect` reads. */
const PAGE = 500

export class ZooKeeperStore implements Store {
  readonly kind = 'zookeeper'
  readonly guarantees: Guarantees
  readonly #settings: Settings
  readonly #groups: Groups
  readonly #gracePeriods: GracePeriods
  readonly #acquisition: Acquisition
  readonly #waiters: Waiters
  readonly #keeper: Keeper
  /** The functions to call when the lease of a claim has ended. */
  readonly #losses = new Map<string, () => void>()
  #isClosed = false

  /** `shortestSession`: milliseconds. */
  constructor(settings: Settings, shortestSession: number) {
    this.guarantees = guaranteesOf(shortestSession)
    this.#settings = settings
    this.#waiters = new Waiters(settings.clock)
    this.#gracePeriods = new GracePeriods(settings.clock)
    const wake = (id: string, delay = 0): void => this.#waiters.notify(id, delay)
    this.#groups = new Groups(settings, shortestSession, {
      wake,
      lose: id => this.#lose(id),
      hold: name => this.#gracePeriods.hold(name),
    })
    this.#keeper = new Keeper(settings, this.#groups, wake)
    this.#acquisition = new Acquisition(settings, this.#groups, this.#gracePeriods)
  }

  acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    const asked: Asked = { claim, signal, at: this.#settings.clock.now() }
    return this.#guard(signal, () => this.#whileOpen(this.#acquisition.acquire(asked)))
  }

  renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    const asked: Asked = { claim, signal, at: this.#settings.clock.now() }
    return this.#guard(signal, () => this.#whileOpen(this.#renew(asked)))
  }

  annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    return this.#guard(signal, async () => {
      const isHeld = await annotate(this.#groups.unclaimed, this.#settings.paths, claim, signal)
      const position = this.#groups.of(claim.id)?.positions.get(claim.id)
      if (isHeld && position) position.claim = claim
      return isHeld
    })
  }

  release(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    return this.#guard(signal, () => this.#release(key))
  }

  onLoss({ id }: ClaimKey, lost: () => void): () => void {
    this.#losses.set(id, lost)
    return () => void this.#losses.delete(id)
  }

  watch(claim: Claim, wake: Wake, signal: AbortSignal): Promise<void> {
    return this.#guard(signal, async () => {
      const { id } = claim
      const position = this.#groups.of(id)?.positions.get(id)
      if (position) position.watch = signal
      this.#waiters.add(id, wake, signal, () => this.#keeper.remove(claim))
      if (!signal.aborted) this.#keeper.add(claim)
    })
  }

  async *inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    const { paths } = this.#settings
    const find = async (): Promise<string[]> =>
      'name' in query ? [query.name] : namesFrom(this.#groups.unclaimed, paths, query.prefix)
    const names = await this.#guard(signal, find)
    while (names.length > 0) {
      const page = names.splice(0, PAGE)
      yield* await this.#guard(signal, () => lookAt(this.#groups.unclaimed, paths, page))
    }
  }

  break(name: string, parameters: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    const { unclaimed } = this.#groups
    return this.#guard(signal, () => breakLease(unclaimed, this.#settings.paths, name, { ...parameters, signal }))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#waiters.clear()
    this.#keeper.clear()
    await this.#groups.close()
  }

  async #renew(asked: Asked): Promise<Grant | undefined> {
    const { claim, signal } = asked
    const { name, id, ttl } = claim
    const group = this.#groups.for(ttl)
    // Heartbeats are a third of the ttl apart, so 2/3 of it remain before each. If less than half remains, some were lost.
    const least = ttl / 2
    group.positions.keep(claim)
    const again = await this.#acquisition.holdAgain(group, asked, least)
    if (again) return again
    let before = this.#groups.of(id)?.positions.get(id)
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const connection = await group.connection(least, ttl)
      signal.throwIfAborted()
      const { paths } = this.#settings
      const found = before?.node && before.token !== undefined ? before.node : undefined
      before = undefined // the claim has no other node, or it must be searched for
      const held =
        (found && (await heldBy(group, connection, paths, name, found))) ??
        (await leaseOf(group, connection, paths, claim))
      if (!held) return undefined
      const position = await group.take(connection, asked, { from: held.node, held })
      signal.throwIfAborted() // as in `holdAgain`
      if (position) return this.#acquisition.hold(group, position, asked)
    }
    throw tooManyChanges(name)
  }

  async #release(key: ClaimKey): Promise<'released' | 'gone'> {
    const { name, id } = key
    const group = this.#groups.of(id)
    const position = group?.positions.get(id)
    if (position?.token !== undefined) this.#gracePeriods.forget(name)
    if (!group || !position) return this.#withdrawUnclaimed(key)
    try {
      group.positions.leave(position)
      const connection = await group.connection(0)
      const { node } = position
      // The server may refuse what a claim that asks now has created, because the claim was withdrawn before.
      const isKnown = node !== undefined && !this.#acquisition.isAsking(id)
      const isDeleted = isKnown && (await group.delete(connection, name, [node]))
      const answer = isDeleted ? 'released' : await group.withdrawals.withdraw(connection, key)
      // On a session that may end within 5 s, a tombstone does not last that long.
      if (answer === 'gone' && group.session.timeout < 2 * LONGEST_REQUEST) await this.#withdrawUnclaimed(key)
      group.positions.forget(position)
      return answer
    } catch (error) {
      group.positions.abandon(position)
      throw error
    }
  }

  async #withdrawUnclaimed(key: ClaimKey): Promise<'released' | 'gone'> {
    const { unclaimed } = this.#groups
    return unclaimed.withdrawals.withdraw(await unclaimed.connection(0), key)
  }

  /** Reports the end of a lease once, however many sweeps its node takes. */
  #lose(id: string): void {
    const lost = this.#losses.get(id)
    this.#losses.delete(id)
    lost?.()
  }

  /**
   * Rejects if the store was closed meanwhile. Closing may have ended the session in which the name was just granted, or to
   * which the lease was moved.
   */
  async #whileOpen<Answer>(asking: Promise<Answer>): Promise<Answer> {
    const answer = await asking
    if (this.#isClosed) throw closed()
    return answer
  }

  /**
   * The claims of a session end with it. If a request finds a session ended, it is retried with a new one, once for each
   * session that it uses.
   */
  async #guard<Answer>(signal: AbortSignal, ask: () => Promise<Answer>): Promise<Answer> {
    for (let attempt = 0; ; attempt++) {
      signal.throwIfAborted()
      if (this.#isClosed) throw closed()
      try {
        return await ask()
      } catch (error) {
        if (signal.aborted && error === signal.reason) throw error
        if (this.#isClosed) throw closed()
        this.#groups.drop()
        if (!(error instanceof Expired) || attempt > 1) throw failure(error, true)
      }
    }
  }
}
