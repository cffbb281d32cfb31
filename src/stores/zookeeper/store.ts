import type { Busy, Claim, ClaimKey, Grant, Guarantees, LeaseRecord, Query, Store, Wake } from '../../contract/store.ts'
import { LONGEST_REQUEST, TURN } from '../../contract/time.ts'
import { closed } from '../shared/closed.ts'
import { annotate } from './annotate.ts'
import { breakLease } from './break.ts'
import type { Connection } from './connection.ts'
import { Expired, failure } from './failure.ts'
import type { Asked, Group, Held, Place, Settings } from './group.ts'
import { Groups } from './groups.ts'
import { guarantees } from './guarantees.ts'
import { heldBy, leaseOf, lookAt, namesFrom, recordsOf } from './looking.ts'
import type { Line, Node } from './nodes.ts'
import { Ownership } from './ownership.ts'
import { MOST_TRIES, restless } from './tries.ts'
import { Turns } from './turns.ts'
import { Wakes } from './wakes.ts'

/** Milliseconds: `tickTime` as ZooKeeper comes; it ends sessions at ticks, and grants none shorter than two. */
const USUAL_TICK = 2_000

/** Names looked at by one request of `inspect`. */
const PAGE = 500

export class ZooKeeperStore implements Store {
  readonly kind = 'zookeeper'
  readonly guarantees: Guarantees = guarantees
  readonly #settings: Settings
  readonly #groups: Groups
  readonly #turns: Turns
  readonly #ownership: Ownership
  readonly #wakes = new Wakes()
  /** What to call when the lease of a claim is over. */
  readonly #losses = new Map<string, () => void>()
  #isClosed = false

  /** `shortestSession`: milliseconds. */
  constructor(settings: Settings, shortestSession: number) {
    this.#settings = settings
    this.#turns = new Turns(settings.clock)
    this.#ownership = new Ownership(settings)
    this.#groups = new Groups(settings, shortestSession, {
      wake: (id, delay) => this.#wakes.wake(id, delay),
      lose: id => this.#losses.get(id)?.(),
    })
  }

  takeover(ttl: number): number {
    return Math.max(this.#groups.sessionFor(ttl), 2 * USUAL_TICK) + USUAL_TICK
  }

  acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    const asked: Asked = { claim, signal, at: this.#settings.clock.now() }
    return this.#guard(signal, () => this.#acquire(asked))
  }

  renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    const asked: Asked = { claim, signal, at: this.#settings.clock.now() }
    return this.#guard(signal, () => this.#renew(asked))
  }

  annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    return this.#guard(signal, () => annotate(this.#groups.looking, this.#settings.paths, claim, signal))
  }

  release(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    return this.#guard(signal, () => this.#release(key))
  }

  onLoss({ id }: ClaimKey, lost: () => void): () => void {
    this.#losses.set(id, lost)
    return () => void this.#losses.delete(id)
  }

  watch({ id }: ClaimKey, wake: Wake, signal: AbortSignal): Promise<void> {
    return this.#guard(signal, async () => this.#wakes.add(id, wake, signal))
  }

  async *inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    const { paths } = this.#settings
    const find = async (): Promise<string[]> =>
      'name' in query ? [query.name] : namesFrom(this.#groups.looking, paths, query.prefix)
    const names = await this.#guard(signal, find)
    while (names.length > 0) {
      const page = names.splice(0, PAGE)
      yield* await this.#guard(signal, () => lookAt(this.#groups.looking, paths, page))
    }
  }

  break(name: string, by: string, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#guard(signal, () => breakLease(this.#groups.looking, this.#settings.paths, name, by))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#wakes.clear()
    await this.#groups.close()
  }

  async #acquire(asked: Asked): Promise<Grant | Busy> {
    const { claim, signal } = asked
    const { name, id, ttl, queue } = claim
    const group = this.#groupToAcquire(claim)
    group.want(claim)
    const connection = await group.connection(ttl, ttl)
    signal.throwIfAborted()
    let place = group.places.get(id)
    if (place?.node && place.token !== undefined) {
      if (await group.check(place, ttl, signal)) return this.#hold(group, place, asked)
      group.forget(place)
      place = undefined
    }
    // A name that was free when last seen is worth a node at once; else it is looked at first, which costs no write.
    let line: Line | undefined
    if (place?.node?.kind === 'h') line = await group.lookAtNewest(connection, name)
    else if (place || this.#turns.isBusy(name)) line = await group.look(connection, name)
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      signal.throwIfAborted()
      let mine = line?.of(id)[0]
      if (!line || !mine) {
        if (line?.isWithdrawn(id)) return { held: false, retryAfter: LONGEST_REQUEST }
        if (line && !queue && this.#isBusy(claim, line)) return this.#busy(group, connection, claim, line)
        const kind = line && line.nodes.length > 0 ? 'w' : 'h'
        this.#turns.hold(name) // others that ask meanwhile look first
        ;({ place, line } = await group.put(connection, claim, kind))
        mine = line.of(id)[0]
        if (!mine) continue
      }
      place = group.places.get(id)
      if (line.isWithdrawn(id)) {
        await group.delete(connection, name, line.of(id)) // the withdrawal may have forgotten its place already
        if (place) group.forget(place)
        return { held: false, retryAfter: LONGEST_REQUEST }
      }
      if (place?.node && place.node.name !== mine.name) {
        // Put twice: the earlier one counts.
        if (line.of(id).some(({ name }) => name === place?.node?.name))
          await group.delete(connection, name, [place.node])
        group.forget(place)
        place = undefined
      }
      const held = await this.#tryToHold(group, connection, asked, line, mine)
      await this.#assertOwn(group, connection, held ?? place, line)
      if (held) return this.#hold(group, held, asked)
      if (held === null) {
        line = await group.lookAtNewest(connection, name)
        continue
      }
      if (!queue) {
        if (place?.node) await group.delete(connection, name, [place.node])
        if (place) group.forget(place)
        return this.#busy(group, connection, claim, line)
      }
      if (mine.kind === 'h') {
        await group.take(connection, asked, { from: mine, ahead: [], kind: 'w', held: undefined })
        line = await group.look(connection, name)
        continue
      }
      const busy = await this.#wait(group, connection, claim, line, mine)
      if (busy) return busy
      line = await group.look(connection, name)
    }
    throw restless(name)
  }

  /** `undefined`: it is not its turn. `null`: it was, and the line changed meanwhile. */
  async #tryToHold(
    group: Group,
    connection: Connection,
    asked: Asked,
    line: Line,
    mine: Node,
  ): Promise<Place | undefined | null> {
    const { claim } = asked
    const ahead = line.ahead(mine)
    this.#turns.see(claim.name, line)
    if (ahead.length > 0 && !this.#turns.mayTake(claim.name, ahead.length)) return undefined
    let held: Held | undefined
    if (ahead.length === 0 && mine.kind === 'h') {
      const place = group.places.get(claim.id)
      const isOwn = place?.node?.name === mine.name
      held = isOwn ? undefined : await heldBy(group, connection, this.#settings.paths, claim.name, mine)
      const token = isOwn ? (mine.token ?? place.czxid) : held?.token
      if (token === undefined) return null
      // Others may have held since the node was made: then it needs a token above theirs.
      if (token < line.mark) held = undefined
      else if (isOwn) {
        place.token = token
        return place
      }
    }
    return (await group.take(connection, asked, { from: mine, ahead, kind: 'h', held })) ?? null
  }

  async #assertOwn(group: Group, connection: Connection, place: Place | undefined, line: Line): Promise<void> {
    if (!place?.node) return
    try {
      await this.#ownership.check(group, connection, place.name, place.node, line)
    } catch (error) {
      place.token = undefined // it must not look like a holder when it asks again
      throw error
    }
  }

  async #renew(asked: Asked): Promise<Grant | undefined> {
    const { claim, signal } = asked
    const { name, id, ttl } = claim
    const group = this.#groups.for(ttl)
    // Beats that are a third of the ttl apart leave 2/3 of it before each: less than half only if some were lost.
    const least = ttl / 2
    const known = group.want(claim)
    if (known?.node && known.token !== undefined) {
      if (await group.check(known, least, signal)) return this.#hold(group, known, asked)
      group.forget(known)
    }
    let before = this.#groups.of(id)?.places.get(id)
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const connection = await group.connection(least, ttl)
      signal.throwIfAborted()
      const { paths } = this.#settings
      const found = before?.node && before.token !== undefined ? before.node : undefined
      before = undefined // it is where it was, or it must be looked for
      const held =
        (found && (await heldBy(group, connection, paths, name, found))) ??
        (await leaseOf(group, connection, paths, claim))
      if (!held) return undefined
      const place = await group.take(connection, asked, { from: held.node, ahead: [], kind: 'h', held })
      if (place) return this.#hold(group, place, asked)
    }
    throw restless(name)
  }

  async #release(key: ClaimKey): Promise<'released' | 'gone'> {
    const { name, id } = key
    this.#turns.forget(name)
    const group = this.#groups.of(id)
    const place = group?.places.get(id)
    if (!group || !place) {
      const looking = this.#groups.looking
      return looking.withdraw(await looking.connection(0), key)
    }
    try {
      const connection = await group.connection(0)
      const { node } = place
      const isDeleted = node !== undefined && (await group.delete(connection, name, [node]))
      const answer = isDeleted ? 'released' : await group.withdraw(connection, key)
      group.forget(place)
      return answer
    } catch (error) {
      group.abandon(place)
      throw error
    }
  }

  /** The server may keep it for longer; nobody needs to count on that. */
  #hold(group: Group, place: Place, { claim, at }: Asked): Grant {
    const ttl = Math.min(Math.floor(group.session.safeUntil - at), claim.ttl)
    place.until = at + ttl
    this.#groups.keepOnlyIn(group, place.id)
    this.#turns.hold(place.name)
    return { held: true, token: place.token ?? place.czxid, ttl }
  }

  /** Arms what wakes a waiter; `undefined` if the one before it is gone already. */
  async #wait(group: Group, connection: Connection, claim: Claim, line: Line, mine: Node): Promise<Busy | undefined> {
    const { name, id } = claim
    const ahead = line.ahead(mine)
    const before = ahead.at(-1)
    const first = ahead[0]
    if (!before || !first) return undefined
    const arming = [group.arm(connection, name, before, id, 0)]
    // The second comes in time, should the first not take its turn.
    if (ahead.length === 2) arming.push(group.arm(connection, name, first, id, TURN))
    const [busy, ...armed] = await Promise.all([this.#busy(group, connection, claim, line, ahead), ...arming])
    return armed[0] ? { ...busy, listens: true } : undefined
  }

  async #busy(
    group: Group,
    connection: Connection,
    claim: Claim,
    line: Line,
    ahead: readonly Node[] = line.nodes,
  ): Promise<Busy> {
    const { name } = claim
    this.#turns.see(name, line)
    const [holder] = line.holder ? await recordsOf(group, connection, this.#settings.paths, name, [line.holder]) : []
    const waiting = ahead.length - (line.holder ? 1 : 0)
    const retryAfter = this.#turns.retryAfter(claim, ahead.length, holder?.remaining)
    return {
      held: false,
      // Which is also what keeps the session of a waiter alive.
      retryAfter: claim.queue ? Math.min(retryAfter, group.session.timeout / 3) : retryAfter,
      ahead: Math.max(waiting, 0),
      holder,
    }
  }

  #isBusy({ name }: Claim, line: Line): boolean {
    this.#turns.see(name, line)
    return line.nodes.length > 0 && !this.#turns.mayTake(name, line.nodes.length)
  }

  /** A claim stays in the session where it is, unless it asks for longer than that lasts. */
  #groupToAcquire({ id, ttl }: Claim): Group {
    const known = this.#groups.of(id)
    const wanted = this.#groups.for(ttl)
    return known && known.session.timeout >= wanted.session.timeout ? known : wanted
  }

  /** A session that ended took its claims along: whatever is asked then is asked of a new one, once. */
  async #guard<Answer>(signal: AbortSignal, ask: () => Promise<Answer>): Promise<Answer> {
    signal.throwIfAborted()
    for (let tries = 0; ; tries++) {
      if (this.#isClosed) throw closed()
      try {
        return await ask()
      } catch (error) {
        if (signal.aborted && error === signal.reason) throw error
        if (this.#isClosed) throw closed()
        this.#groups.drop()
        if (!(error instanceof Expired) || tries > 0) throw failure(error, true)
      }
    }
  }
}
