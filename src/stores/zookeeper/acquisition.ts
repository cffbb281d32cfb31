import type { Busy, Claim, Grant } from '../../contract/store.ts'
import { LONGEST_REQUEST, TURN } from '../../contract/time.ts'
import type { Connection } from './connection.ts'
import type { GracePeriods } from './grace-periods.ts'
import type { Group } from './group.ts'
import type { Groups } from './groups.ts'
import { heldBy, recordsOf } from './inspection.ts'
import type { Node, Queue } from './nodes.ts'
import { Ownership } from './ownership.ts'
import type { Asked, Held, Place, Settings } from './place.ts'
import { MAX_ATTEMPTS, tooManyChanges } from './retries.ts'

/** How claims acquire names, or join their queues. */
export class Acquisition {
  readonly #settings: Settings
  readonly #groups: Groups
  readonly #gracePeriods: GracePeriods
  readonly #ownership: Ownership
  /** By id, the last acquire of each claim. */
  readonly #running = new Map<string, Promise<void>>()

  constructor(settings: Settings, groups: Groups, gracePeriods: GracePeriods) {
    this.#settings = settings
    this.#groups = groups
    this.#gracePeriods = gracePeriods
    this.#ownership = new Ownership(settings)
  }

  /** Copies of one claim run one after the other, because they share its place. */
  acquire(asked: Asked): Promise<Grant | Busy> {
    const { id } = asked.claim
    const before = this.#running.get(id)
    const answer = before
      ? before.then(() => {
          asked.signal.throwIfAborted()
          return this.#acquire(asked)
        })
      : this.#acquire(asked)
    const settled = answer.then(
      () => {},
      () => {},
    )
    this.#running.set(id, settled)
    void settled.then(() => {
      if (this.#running.get(id) === settled) this.#running.delete(id)
    })
    return answer
  }

  async #acquire(asked: Asked): Promise<Grant | Busy> {
    const { claim, signal } = asked
    const { name, id, ttl, queue: mayWait } = claim
    const group = this.#groupToAcquire(claim)
    group.places.keep(claim)
    let place = group.places.get(id)
    // A waiter that was woken reads at once. To attach its session again would take longer than its grace period.
    let connection = await group.connection(place?.node?.kind === 'w' ? 0 : ttl, ttl)
    signal.throwIfAborted()
    place = group.places.get(id)
    if (place?.node?.kind === 'h' && place.token !== undefined) {
      if (await group.check(place, ttl, signal)) return this.hold(group, place, asked)
      group.places.forget(place)
      place = undefined
    }
    // If the name was free when last seen, create a node at once. Otherwise read first, which costs no write.
    const isBehindOwn = mayWait && !this.#groups.of(id) && group.places.isQueued(name)
    let queue: Queue | undefined
    if (place?.node?.kind === 'h') queue = await group.queues.lookAtNewest(connection, name)
    else if (place || (this.#gracePeriods.isBusy(name) && !isBehindOwn))
      queue = await group.queues.look(connection, name)
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      signal.throwIfAborted()
      let mine = queue?.of(id)[0]
      if (!queue || !mine) {
        if (queue?.isWithdrawn(id)) return { held: false, retryAfter: LONGEST_REQUEST }
        if (queue && !mayWait && this.#isBusy(claim, queue)) return this.#busy(group, connection, claim, queue)
        const kind = (queue ? queue.nodes.length > 0 : isBehindOwn) ? 'w' : 'h'
        // Other claims read first meanwhile.
        if (!this.#gracePeriods.isBusy(name)) this.#gracePeriods.hold(name)
        ;({ place, queue } = await group.put(connection, claim, kind))
        mine = queue.of(id)[0]
        if (!mine) continue
      }
      place = group.places.get(id)
      if (queue.isWithdrawn(id)) {
        await group.delete(connection, name, queue.of(id)) // the withdrawal may have forgotten the node already
        if (place) group.places.forget(place)
        return { held: false, retryAfter: LONGEST_REQUEST }
      }
      if (place?.node && place.node.name !== mine.name) {
        // The claim has two nodes: the earlier one counts.
        if (queue.of(id).some(({ name }) => name === place?.node?.name))
          await group.delete(connection, name, [place.node])
        place.node = undefined
        place.token = undefined
        place = undefined
      }
      const held = await this.#tryToHold(group, connection, asked, queue, mine)
      await this.#assertOwn(group, connection, held ?? place, queue)
      if (held) {
        if (group.session.safeUntil < asked.at + ttl) await group.connection(ttl, ttl)
        return this.hold(group, held, asked)
      }
      if (held === null) {
        queue = await group.queues.lookAtNewest(connection, name)
        continue
      }
      if (!mayWait) {
        if (place?.node) await group.delete(connection, name, [place.node])
        if (place) group.places.forget(place)
        return this.#busy(group, connection, claim, queue)
      }
      if (mine.kind === 'h') {
        await group.take(connection, asked, { from: mine, ahead: [], kind: 'w', held: undefined })
        queue = await group.queues.look(connection, name)
        continue
      }
      connection = await group.connection(ttl, ttl)
      const busy = await this.#wait(group, connection, claim, queue, mine)
      if (busy) return busy
      queue = await group.queues.look(connection, name)
    }
    throw tooManyChanges(name)
  }

  /** `undefined`: others are ahead. `null`: the claim may hold, but the queue changed meanwhile. */
  async #tryToHold(
    group: Group,
    connection: Connection,
    asked: Asked,
    queue: Queue,
    mine: Node,
  ): Promise<Place | undefined | null> {
    const { claim } = asked
    const ahead = queue.ahead(mine)
    this.#gracePeriods.see(claim.name, queue)
    if (ahead.length > 0 && !this.#gracePeriods.mayTake(claim.name, ahead)) return undefined
    let held: Held | undefined
    if (ahead.length === 0 && mine.kind === 'h') {
      const place = group.places.get(claim.id)
      const isOwn = place?.node?.name === mine.name
      held = isOwn ? undefined : await heldBy(group, connection, this.#settings.paths, claim.name, mine)
      const token = isOwn ? (place.token ?? mine.token ?? place.czxid) : held?.token
      if (token === undefined) return null
      // If others held after the node was created, the claim needs a token above theirs.
      if (token < queue.mark) held = undefined
      else if (isOwn) {
        place.token = token
        return place
      }
    }
    return (await group.take(connection, asked, { from: mine, ahead, kind: 'h', held })) ?? null
  }

  async #assertOwn(group: Group, connection: Connection, place: Place | undefined, queue: Queue): Promise<void> {
    if (!place?.node) return
    try {
      await this.#ownership.check(group, connection, place.name, place.node, queue)
    } catch (error) {
      place.token = undefined // it must not count as a holder when it asks again
      throw error
    }
  }

  /** The grant. The server may keep the lease longer, which nobody relies on. */
  hold(group: Group, place: Place, { claim, at }: Asked): Grant {
    const ttl = Math.min(Math.floor(group.session.safeUntil - at), claim.ttl)
    place.until = at + ttl
    place.behind = undefined
    place.watch = undefined
    this.#groups.keepOnlyIn(group, place.id)
    this.#gracePeriods.hold(place.name)
    return { held: true, token: place.token ?? place.czxid, ttl }
  }

  /** Sets the watches that wake a waiter. `undefined` if the node ahead of it is gone already. */
  async #wait(group: Group, connection: Connection, claim: Claim, queue: Queue, mine: Node): Promise<Busy | undefined> {
    const { name, id } = claim
    const ahead = queue.ahead(mine)
    const [beyond, before] = [ahead.at(-2), ahead.at(-1)]
    if (!before) return undefined
    const place = group.places.get(id)
    if (place) place.behind = before
    const arming = [group.arm(connection, name, before.name, id, 0)]
    // This waiter looks 100 ms after the node beyond is gone, in case the waiter between them hangs. It sets that watch
    // while the node beyond still waits, because that claim may hold too briefly for this waiter to ask meanwhile.
    if (beyond) arming.push(group.arm(connection, name, beyond.name, id, TURN))
    const [busy, ...armed] = await Promise.all([this.#busy(group, connection, claim, queue, ahead), ...arming])
    return armed[0] ? { ...busy, listens: true } : undefined
  }

  async #busy(
    group: Group,
    connection: Connection,
    claim: Claim,
    queue: Queue,
    ahead: readonly Node[] = queue.nodes,
  ): Promise<Busy> {
    const { name } = claim
    this.#gracePeriods.see(name, queue)
    const own = queue.holder && group.places.recordOf(queue.holder)
    const [holder] =
      own || !queue.holder ? [own] : await recordsOf(group, connection, this.#settings.paths, name, [queue.holder])
    const waiting = ahead.length - (queue.holder ? 1 : 0)
    const retryAfter = this.#gracePeriods.retryAfter(claim, ahead, holder?.remaining)
    return {
      held: false,
      // Asking also keeps the session of a waiter alive.
      retryAfter: claim.queue ? Math.min(retryAfter, group.session.timeout / 3) : retryAfter,
      ahead: Math.max(waiting, 0),
      holder,
    }
  }

  #isBusy({ name }: Claim, queue: Queue): boolean {
    this.#gracePeriods.see(name, queue)
    return queue.nodes.length > 0 && !this.#gracePeriods.mayTake(name, queue.nodes)
  }

  /** The claim keeps its session, unless its ttl needs a longer one. */
  #groupToAcquire({ id, ttl }: Claim): Group {
    const known = this.#groups.of(id)
    const wanted = this.#groups.for(ttl)
    return known && known.session.timeout >= wanted.session.timeout ? known : wanted
  }
}
