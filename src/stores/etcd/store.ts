import type { Busy, Claim, ClaimKey, Grant, Guarantees, LeaseRecord, Query, Store, Wake } from '../../contract/store.ts'
import { type Clock, LONGEST_REQUEST, requestLimit } from '../../contract/time.ts'
import { closed } from '../shared/closed.ts'
import { askAgainAfter } from '../shared/queue.ts'
import { Changes } from './changes.ts'
import { Direct } from './direct.ts'
import { Exits } from './exits.ts'
import type { Gateway } from './gateway.ts'
import { guarantees } from './guarantees.ts'
import { records } from './inspection.ts'
import { Keys, leaseOf, secondsOf } from './keys.ts'
import { Leases, orMissing } from './leases.ts'
import { isTurn, Line, type Waiter } from './line.ts'
import type { KeyValue } from './messages.ts'
import { holderOf, idOf, secondsAsked } from './record.ts'
import { type Beat, granted, Shared, termOf, vanished } from './shared.ts'
import { isSpare } from './spares.ts'
import { before, join, situation, situationOf, take } from './txn.ts'

/** Milliseconds after which a waiter asks again for whom no watch listens. */
const POLL = 1_000

/** Every so many milliseconds etcd looks for leases whose time is over. */
const SWEEP = 500

/** Milliseconds: one and a half election timeouts, as etcd has them by default. */
const USUAL_LEAST_TTL = 2_000

const refused: Busy = { held: false, retryAfter: LONGEST_REQUEST }

/**
 * A name is held by whoever made the key `held`, on the etcd lease of its claim. Who does not get it makes a key in the
 * line, on that lease as well, and takes the name in the order of these keys.
 */
export class EtcdStore implements Store {
  readonly kind = 'etcd'
  readonly guarantees: Guarantees = guarantees
  readonly #gateway: Gateway
  readonly #keys: Keys
  readonly #shared: Shared
  readonly #leases: Leases
  readonly #direct: Direct
  readonly #exits: Exits
  readonly #changes: Changes
  readonly #clock: Clock
  readonly #lines = new Map<string, Line>()

  /** By `clock` a waiter's lease ages, so it must count the time for which the machine sleeps. */
  constructor(gateway: Gateway, prefix: string, clock: Clock) {
    this.#gateway = gateway
    this.#clock = clock
    this.#keys = new Keys(prefix)
    this.#shared = new Shared(gateway, this.#keys)
    this.#leases = new Leases(gateway, this.#shared, clock)
    const [keys, shared, leases] = [this.#keys, this.#shared, this.#leases]
    this.#direct = new Direct(gateway, keys, shared, leases, clock)
    this.#exits = new Exits({ gateway, keys, shared, leases, direct: this.#direct })
    this.#changes = new Changes(gateway, keys, shared, leases)
  }

  takeover(ttl: number): number {
    return Math.max(secondsOf(ttl) * 1_000, USUAL_LEAST_TTL) + 2 * SWEEP
  }

  async acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    this.#assertWanted(signal)
    const waiter = this.#lines.get(claim.name)?.waiters.get(claim.id)
    if (waiter) return this.#askAgain(claim, waiter, signal)
    if (!claim.queue) {
      const answer = await this.#lookFirst(claim)
      signal.throwIfAborted()
      if (answer) return answer
    }
    return this.#enter(claim, signal)
  }

  async renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    this.#assertWanted(signal)
    const { name, id, ttl } = claim
    const [seconds, limit, beatAt] = [secondsOf(ttl), requestLimit(ttl), this.#clock.now()]
    const known = this.#leases.known(id)
    const lease = known?.lease ?? leaseOf(id, seconds)
    const [beat, { found, term }] = await Promise.all([
      known === undefined || known.seconds === seconds ? this.#shared.keepAlive(lease, limit) : undefined,
      this.#shared.look(this.#keys.held(name), limit),
    ])
    if (!found || idOf(found) !== id) return undefined
    signal.throwIfAborted()
    if (beat && found.lease === lease) {
      if (known?.tenancy) known.tenancy.spare = { ...known.tenancy.spare, beat, beatAt }
      return granted(found.create_revision, beat, term)
    }
    // Acquired through another store, such as that of the main thread.
    if (!known && isSpare(found.lease) && secondsAsked(found) === seconds) {
      const current = await this.#shared.keepAlive(found.lease, limit)
      this.#leases.know(id, { lease: found.lease, seconds })
      return granted(found.create_revision, current, term)
    }
    return this.#changes.ttl(claim, found)
  }

  async annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    this.#assertWanted(signal)
    return this.#changes.note(claim, signal)
  }

  async release({ name, id }: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    this.#assertWanted(signal)
    this.#lines.get(name)?.leave(id)
    return this.#exits.release({ name, id }, signal)
  }

  async watch({ name, id }: ClaimKey, wake: Wake, signal: AbortSignal): Promise<void> {
    this.#assertWanted(signal)
    await this.#line(name).watch(id, wake, signal)
  }

  async *inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    this.#assertWanted(signal)
    yield* records(this.#gateway, this.#keys, query, lease => this.#leases.remaining(lease), signal)
  }

  async break(name: string, _by: string, signal: AbortSignal): Promise<bigint | undefined> {
    this.#assertWanted(signal)
    return this.#exits.break(name, signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const line of this.#lines.values()) line.end()
    this.#lines.clear()
    if (!this.#gateway.isClosed) await this.#leases.end()
    this.#gateway.close()
  }

  /** What can be answered without writing: a try that loses costs no write. */
  async #lookFirst(claim: Claim): Promise<Busy | undefined> {
    const { held, waiting } = await this.#shared.survey(claim.name, requestLimit(claim.ttl))
    if (held && idOf(held) === claim.id) return undefined // which finds out more
    return held || waiting > 0 ? this.#busy(claim, held, waiting, undefined) : undefined
  }

  async #enter(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    const { name, id, ttl, queue } = claim
    const limit = requestLimit(ttl)
    const settled = await this.#settle(claim)
    if (settled) return settled
    signal.throwIfAborted()
    // Not if others of this process wait: then it is most likely not free.
    const taken = queue && this.#lines.has(name) ? undefined : await this.#direct.take(claim, signal)
    if (taken) return taken
    signal.throwIfAborted()
    if (!queue) {
      const { held, waiting } = await this.#shared.survey(name, limit)
      if (!held || idOf(held) !== id) return held || waiting > 0 ? this.#busy(claim, held, waiting, undefined) : refused
      const recovered = await this.#recover(claim)
      if (recovered) return recovered
      throw vanished()
    }
    const lease = leaseOf(id, secondsOf(ttl))
    const beatAt = this.#clock.now()
    this.#leases.know(id, { lease, seconds: secondsOf(ttl) })
    const beat = await this.#leases.grant(lease, ttl, limit)
    signal.throwIfAborted()
    const { header, succeeded, responses = [] } = await this.#gateway.txn(join(this.#keys, claim, lease), limit)
    const [, held, line] = responses.map(({ response_range = {} }) => response_range)
    if (succeeded) {
      const found = { held: held?.kvs?.[0], ahead: Number(line?.count ?? 1) - 1 }
      return this.#wait(claim, { lease, revision: header.revision, beat, beatAt }, found, signal)
    }
    const answer = await this.#gateway.txn({ success: situation(this.#keys, claim) }, limit)
    const found = situationOf(answer)
    if (found.held && !found.isGone && idOf(found.held) === id) {
      if (found.held.lease !== lease) this.#leases.drop(id, lease)
      return this.#again(claim, found.held, termOf(answer.header), found.place)
    }
    if (found.isGone) {
      this.#leases.drop(id, lease)
      return refused
    }
    // It was in line before, by a request whose answer was lost or through another store, and others may be behind it.
    const { place } = found
    if (!place) throw vanished()
    const { kvs = [] } = await this.#gateway.range(before(this.#keys, name, place.create_revision), limit)
    const known = { lease, revision: place.create_revision, beat, beatAt }
    return this.#wait(claim, known, { held: found.held, ahead: kvs.length }, signal)
  }

  /** What became of a request for the claim, on a lease that is not its own, that was not answered. */
  async #settle(claim: Claim): Promise<Grant | undefined> {
    const known = this.#leases.known(claim.id)
    if (!known?.tenancy) return undefined
    const held = await this.#recover(claim)
    if (held) return held
    // It may arrive still, but not once its lease has ended.
    known.tenancy.isOver = true
    await this.#leases.revoke(known.lease).catch(orMissing)
    this.#leases.forget(claim.id)
    return undefined
  }

  async #recover(claim: Claim): Promise<Grant | undefined> {
    const { found, term } = await this.#shared.look(this.#keys.held(claim.name), requestLimit(claim.ttl))
    return found && idOf(found) === claim.id ? this.#again(claim, found, term) : undefined
  }

  async #wait(
    claim: Claim,
    known: Pick<Waiter, 'lease' | 'revision' | 'beat' | 'beatAt'>,
    { held, ahead }: { held: KeyValue | undefined; ahead: number },
    signal: AbortSignal,
  ): Promise<Grant | Busy> {
    signal.throwIfAborted() // nobody would take it from the line again
    const line = this.#line(claim.name)
    const now = this.#clock.now()
    const waiter: Waiter = { ...known, ahead, freeSince: held ? undefined : now, askedAt: now }
    line.join(claim.id, waiter)
    return isTurn(waiter, now) ? this.#askAgain(claim, waiter, signal) : this.#busy(claim, held, ahead, waiter, line)
  }

  async #askAgain(claim: Claim, waiter: Waiter, signal: AbortSignal): Promise<Grant | Busy> {
    const { name, id, ttl } = claim
    const line = this.#line(name)
    const limit = requestLimit(ttl)
    const { lease, revision } = waiter
    waiter.askedAt = this.#clock.now()
    const view = line.view(id, revision)
    if (view) waiter.ahead = view.ahead
    if (view && !view.held) waiter.freeSince = Math.min(waiter.freeSince ?? view.freeSince, view.freeSince)
    const isWoken = view !== undefined && !view.held && isTurn(waiter, waiter.askedAt)
    const beating = this.#keepPlace(waiter, isWoken, limit)
    beating.catch(() => {}) // told below
    if (!isWoken) {
      const state = await this.#look(claim, waiter, line)
      if (typeof state === 'object' && (await beating).ttl > 0) return state
      signal.throwIfAborted()
    }
    const taking = this.#gateway.txn(take(this.#keys, claim, lease, revision), limit)
    const [beat, answer] = await Promise.all([beating, taking.catch(orMissing)])
    if (answer?.succeeded) {
      line.leave(id)
      return granted(answer.header.revision, beat, termOf(answer.header))
    }
    const state = beat.ttl > 0 ? await this.#look(claim, waiter, line) : 'gone'
    if (typeof state === 'object') return state
    // Somebody held it for a moment: the claim is still the next.
    if (state === 'turn') return this.#busy(claim, undefined, waiter.ahead, waiter, line)
    // Its place has lapsed or it was withdrawn, or it holds by a request whose answer was lost.
    line.leave(id)
    signal.throwIfAborted()
    return this.#enter(claim, signal)
  }

  /** One that is about to hold, and was kept alive just now, has no time for that: its renewals begin soon enough. */
  async #keepPlace(waiter: Waiter, isWoken: boolean, limit: number): Promise<Beat> {
    const { beat, beatAt, askedAt } = waiter
    const age = askedAt - beatAt
    if (isWoken && age < beat.ttl / 10) return { ...beat, ttl: Math.floor(beat.ttl - age) }
    waiter.beat = await this.#shared.keepAlive(waiter.lease, limit)
    waiter.beatAt = askedAt
    return waiter.beat
  }

  /**
   * How a waiter stands: read, not written, for the watch may be a little behind. It is to wait, or it is its turn, or
   * it has no place any more.
   */
  async #look(claim: Claim, waiter: Waiter, line: Line): Promise<Busy | 'turn' | 'gone'> {
    const { name, id, ttl } = claim
    const limit = requestLimit(ttl)
    let { held, waiting } = await this.#shared.survey(name, limit)
    const view = line.agrees(held, waiting) ? line.view(id, waiter.revision) : undefined
    if (view) waiter.ahead = view.ahead
    else {
      const read = { success: situation(this.#keys, claim, waiter.revision) }
      const found = situationOf(await this.#gateway.txn(read, limit), true)
      if (found.isGone || found.place?.create_revision !== waiter.revision) return 'gone'
      waiter.ahead = found.line
      held = found.held
    }
    if (held && idOf(held) === id) return 'gone'
    const now = this.#clock.now()
    waiter.freeSince = held ? undefined : (waiter.freeSince ?? now)
    return isTurn(waiter, now) ? 'turn' : this.#busy(claim, held, waiter.ahead, waiter, line)
  }

  /** A holder that asks again, whose lease is never shortened by that. */
  async #again(claim: Claim, found: KeyValue, confirmed: number, place?: KeyValue): Promise<Grant> {
    const { id, ttl } = claim
    if (place) await this.#gateway.txn({ success: [{ request_delete_range: { key: place.key } }] })
    const { lease = '0', create_revision: revision } = found
    const beatAt = this.#clock.now()
    const beat = await this.#shared.keepAlive(lease, requestLimit(ttl))
    if (beat.ttl < ttl && beat.ttl > 0) return this.#changes.ttl(claim, found)
    const known = this.#leases.known(id)
    if (known?.lease === lease && known.tenancy?.isOver === false) {
      known.tenancy.spare = { ...known.tenancy.spare, beat, beatAt }
      known.tenancy.revision = revision
    } else this.#leases.know(id, { lease, seconds: secondsOf(beat.ttl) })
    return granted(revision, beat, confirmed)
  }

  async #busy(
    { name, ttl, queue }: Claim,
    held: KeyValue | undefined,
    ahead: number,
    waiter: Waiter | undefined,
    line?: Line,
  ): Promise<Busy> {
    const remaining = held ? await this.#leases.remaining(held.lease ?? '0') : 0
    const now = this.#clock.now()
    const freeAt = held ? now + Math.max(remaining, SWEEP) : (waiter?.freeSince ?? now)
    const turn = askAgainAfter(now, freeAt, ahead, waiter?.beat.ttl ?? ttl, queue)
    // A third of what its place lasts from when that was asked for, however long the answer took.
    const lapse = waiter ? Math.max(waiter.beatAt + waiter.beat.ttl / 3 - now, 1) : turn
    return {
      held: false,
      retryAfter: Math.min(turn, lapse, line && !line.isReady ? POLL : turn),
      ahead,
      listens: line?.isReady,
      holder: held && holderOf(name, held, Math.max(remaining, 1)),
    }
  }

  #line(name: string): Line {
    let line = this.#lines.get(name)
    if (!line) {
      const made = new Line(this.#gateway, this.#keys, name, this.#clock, () => {
        if (this.#lines.get(name) === made) this.#lines.delete(name)
      })
      line = made
      this.#lines.set(name, made)
    }
    return line
  }

  #assertWanted(signal: AbortSignal): void {
    if (this.#gateway.isClosed) throw closed()
    signal.throwIfAborted()
  }
}
