import type { Busy, Claim, Grant } from '../../contract/store.ts'
import { LONGEST_REQUEST, roundTripOf, TURN } from '../../contract/time.ts'
import { positionLifetime } from '../rules/name.ts'
import type { Connection } from './connection.ts'
import { type Decision, decide } from './decision.ts'
import type { GracePeriods } from './grace-periods.ts'
import type { Group } from './group.ts'
import type { Groups } from './groups.ts'
import { heldBy, recordsOf } from './inspection.ts'
import type { Node, Queue } from './nodes.ts'
import { Ownership } from './ownership.ts'
import type { Asked, Position } from './position.ts'
import { slotsOf } from './record.ts'
import { MAX_ATTEMPTS, pauseAfter, tooManyChanges } from './retries.ts'
import type { Settings } from './settings.ts'
import { Turns } from './turns.ts'

/** With more holders than this, a waiter watches all of them together, which wakes it more often. */
const MOST_WATCHES = 16

const WITHDRAWN: Busy = { held: false, retryAfter: LONGEST_REQUEST }

/** One request of a claim, and its sessions. */
interface Attempt extends Asked {
  /** The group in whose session the claim holds. */
  readonly group: Group
  /** The group in whose session the claim waits. */
  readonly waiting: Group
}

/** Acquires names for claims, or puts the claims into the queues. */
export class Acquisition {
  readonly #settings: Settings
  readonly #groups: Groups
  readonly #gracePeriods: GracePeriods
  readonly #ownership: Ownership
  /** The acquires of each claim, by its id. */
  readonly #running = new Turns()
  /** The claims that try to hold, by name. */
  readonly #trying = new Turns()

  constructor(settings: Settings, groups: Groups, gracePeriods: GracePeriods) {
    this.#settings = settings
    this.#groups = groups
    this.#gracePeriods = gracePeriods
    this.#ownership = new Ownership(settings)
  }

  /** Requests of one claim run one after the other, because they share its `Position`. */
  acquire(asked: Asked): Promise<Grant | Busy> {
    return this.#running.take(asked.claim.id, () => this.#acquire(asked))
  }

  /** Is a request of the claim under way? */
  isAsking(id: string): boolean {
    return this.#running.isTaken(id)
  }

  async #acquire(asked: Asked): Promise<Grant | Busy> {
    const { claim, signal } = asked
    signal.throwIfAborted()
    const { name, id, ttl, queue: mayWait } = claim
    const attempt = { ...asked, ...this.#sessionsFor(claim) }
    const { group, waiting } = attempt
    this.#groups.keep(claim)
    // A waiter that was woken reads at once. Attaching its session again would take longer than its grace period.
    await group.connection(waiting.positions.get(id)?.node?.kind === 'w' ? 0 : ttl, ttl)
    signal.throwIfAborted()
    const again = await this.holdAgain(group, asked, ttl)
    if (again) return again
    let queue = await this.#lookFirst(attempt)
    let created: Position | undefined
    for (let round = 0; round < MAX_ATTEMPTS; round++) {
      signal.throwIfAborted()
      let mine = queue?.of(id)[0]
      if (!queue || !mine) {
        if (queue?.isWithdrawn(id)) return WITHDRAWN
        const decision = queue && !mayWait ? this.#decide(claim, queue, undefined) : undefined
        const isBusy = decision?.answer.held === false && !decision.isUnsettled
        if (queue && isBusy) return this.#busy(attempt, queue, decision)
        ;({ position: created, queue } = await this.#put(attempt, queue))
        mine = queue.of(id)[0]
        if (!mine) continue
      }
      const home = this.#homeOf(attempt)
      let position = home.positions.get(id)
      if (queue.isWithdrawn(id)) {
        // The withdrawal deletes what was there before. It may have forgotten what this request has created.
        const made = queue.of(id).filter(({ name }) => name === created?.node?.name)
        await home.delete(await home.connection(0), name, made)
        this.#groups.abandon(id)
        return WITHDRAWN
      }
      if (position?.node && position.node.name !== mine.name) {
        // The claim has two nodes: the earlier one counts.
        if (queue.of(id).some(({ name }) => name === position?.node?.name))
          await home.delete(await home.connection(0), name, [position.node])
        position.node = undefined
        position.token = undefined
        position = undefined
      }
      if (mayWait && queue.isPassed(mine)) {
        // It counts again from now on, whatever others are granted meanwhile.
        created = await this.#join(attempt, mine)
        queue = await this.#look(attempt)
        continue
      }
      const result = await this.#tryToHold(attempt, queue, mine)
      const held = result && 'node' in result ? result : undefined
      await this.#assertOwn(held ? group : home, held ?? position, queue)
      if (held) {
        if (group.session.safeUntil < asked.at + ttl) await group.connection(ttl, ttl)
        signal.throwIfAborted() // the claim may be withdrawn, and stays so
        return this.hold(group, held, asked)
      }
      const decision = result as Decision | undefined
      if (!decision || (decision.isUnsettled && round < MAX_ATTEMPTS - 1)) {
        await pauseAfter(round, this.#settings.clock)
        queue = await this.#look(attempt, true)
        continue
      }
      if (!mayWait) {
        if (position?.node) await home.delete(await home.connection(0), name, [position.node])
        this.#groups.forget(id)
        return this.#busy(attempt, queue, decision)
      }
      if (mine.kind !== 'w') {
        created = await this.#join(attempt, mine)
      } else {
        if (group !== waiting) await group.connection(ttl, ttl) // so that its lease lasts a whole ttl
        const busy = await this.#wait(attempt, queue, mine, decision)
        if (busy) return busy
      }
      queue = await this.#look(attempt)
    }
    throw tooManyChanges(name)
  }

  /**
   * If the name was free when it was last read, the claim creates a node at once. Otherwise it reads first, which costs no
   * write.
   */
  async #lookFirst(attempt: Attempt): Promise<Queue | undefined> {
    const { name, id, limit = 1, queue: mayWait } = attempt.claim
    const position = this.#groups.of(id)?.positions.get(id)
    if (position) return this.#look(attempt, position.node !== undefined && position.node.kind !== 'w')
    const queues = mayWait && (limit > 1 || this.#isBehindOwn(attempt))
    return this.#gracePeriods.isBusy(name) && !queues ? this.#look(attempt) : undefined
  }

  /** Reads the queue in the session in which the claim has its node. `isNewest`: see `Queues.lookAtNewest`. */
  async #look(attempt: Attempt, isNewest = false): Promise<Queue> {
    const home = this.#homeOf(attempt)
    const connection = await home.connection(0)
    const { name, id } = attempt.claim
    const waits = home.positions.get(id)?.node?.kind === 'w'
    return isNewest ? home.queues.lookAtNewest(connection, name, waits) : home.queues.look(connection, name, waits)
  }

  /** Creates a node for the claim. `seen`: the queue, if it was read. */
  async #put(attempt: Attempt, seen: Queue | undefined): Promise<{ position: Position; queue: Queue }> {
    const { claim, signal, group, waiting } = attempt
    const { name, limit = 1, queue: mayWait } = claim
    const isFree = seen ? seen.nodes.length === 0 : !mayWait || !this.#isBehindOwn(attempt)
    const kind = limit === 1 && isFree ? 'c' : mayWait ? 'w' : 't'
    this.#gracePeriods.hold(name) // other claims now read first
    const home = kind === 'w' ? waiting : group
    const connection = await home.connection(0)
    const roundTrip = await this.#roundTripOn(connection, attempt)
    signal.throwIfAborted() // it may have waited for the session (R13)
    return home.put(connection, claim, kind, roundTrip, signal)
  }

  /** Replaces the node of the claim by one that waits, in the same position. `undefined`: the node is gone. */
  async #join(attempt: Attempt, mine: Node): Promise<Position | undefined> {
    const { claim, waiting } = attempt
    const connection = await waiting.connection(0)
    const roundTrip = await this.#roundTripOn(connection, attempt)
    const position = await waiting.take(connection, attempt, { from: { ...mine, roundTrip } })
    if (position) this.#groups.keepOnlyIn(waiting, claim.id)
    return position
  }

  /**
   * The round trips of a waiter in ms. After a notification it reads the queue on this connection, and takes the name on that
   * of the session in which it will hold.
   */
  async #roundTripOn({ roundTrip: reading }: Connection, { claim, group }: Attempt): Promise<number> {
    return roundTripOf(claim.roundTrip ?? reading + (await group.connection(0)).roundTrip)
  }

  /** Resolves to the position of the claim if it now holds. `undefined`: the queue has changed meanwhile. */
  async #tryToHold(attempt: Attempt, queue: Queue, mine: Node): Promise<Position | Decision | undefined> {
    const { claim, group } = attempt
    if (mine.kind === 'h' || (mine.kind === 'c' && mine === queue.nodes[0])) {
      const position = group.positions.get(claim.id)
      const isOwn = position?.node?.name === mine.name && !this.#groups.mayReplace(mine)
      const connection = await group.connection(0)
      const held = isOwn ? undefined : await heldBy(group, connection, this.#settings.paths, claim.name, mine)
      const token = isOwn ? (position.token ?? mine.token ?? position.czxid) : held?.token
      if (token === undefined) return undefined
      // If others held after the node was created, the claim needs a token above theirs.
      if (mine.kind === 'h' || token >= queue.parent.mark) {
        if (!isOwn) return group.take(connection, attempt, { from: mine, held })
        position.token = token
        return position
      }
    }
    return mine.kind === 't' ? this.#inTurn(attempt, queue, mine) : this.#grant(attempt, queue, mine)
  }

  /** Claims that try at the same time conflict with each other. So those of this process try one after the other. */
  #inTurn(attempt: Attempt, queue: Queue, mine: Node): Promise<Position | Decision | undefined> {
    const grant = (): Promise<Position | Decision | undefined> => this.#grant(attempt, queue, mine)
    return this.#trying.take(attempt.claim.name, grant, async () => {
      attempt.signal.throwIfAborted()
      return this.#grant(attempt, await this.#look(attempt), mine)
    })
  }

  /** Grants the claim what the rules decide. */
  async #grant(attempt: Attempt, queue: Queue, mine: Node): Promise<Position | Decision | undefined> {
    const { claim, group } = attempt
    const decision = this.#decide(claim, queue, mine)
    const { answer, passed } = decision
    if (!answer.held) return decision
    const { version } = queue.parent
    return group.take(await group.connection(0), attempt, { from: mine, granted: { ...answer, passed, version } })
  }

  #decide(claim: Claim, queue: Queue, mine: Node | undefined): Decision {
    const changed = this.#gracePeriods.see(claim.name, queue)
    return decide(queue, claim, mine, { now: this.#settings.clock.now(), changed })
  }

  async #assertOwn(group: Group, position: Position | undefined, queue: Queue): Promise<void> {
    if (!position?.node) return
    try {
      await this.#ownership.check(group, await group.connection(0), position.name, position.node, queue)
    } catch (error) {
      position.token = undefined // it must not count as a holder when it asks again
      throw error
    }
  }

  /**
   * Grants the claim what it holds by a known node of this session. `undefined`: its lease must be looked for, or needs a
   * new node. `least`: see `Session.connection`.
   */
  async holdAgain(group: Group, asked: Asked, least: number): Promise<Grant | undefined> {
    const { claim, signal } = asked
    const known = group.positions.get(claim.id)
    if (!known?.node || known.node.kind === 'w' || known.token === undefined) return undefined
    if (this.#groups.mayReplace(known.node)) return undefined
    const isThere = await group.check(known, least, signal)
    signal.throwIfAborted() // a later request may have moved the lease to another session
    if (isThere) return this.hold(group, known, asked)
    group.positions.forget(known)
    return undefined
  }

  /** Returns the grant. The server may keep the lease longer, but nothing relies on that. */
  hold(group: Group, position: Position, { claim, at }: Asked): Grant {
    const ttl = Math.min(Math.floor(group.session.safeUntil - at), claim.ttl)
    position.until = Math.max(position.until, at + ttl) // this may be an older request, or a copy of one
    position.behind = undefined
    position.watch = undefined
    this.#groups.keepOnlyIn(group, position.id)
    this.#gracePeriods.hold(position.name)
    return { held: true, token: position.token ?? position.czxid, ttl, slots: position.node && slotsOf(position.node) }
  }

  /** Sets the watches that wake a waiter. Resolves to `undefined` if a node that it waits for is already gone. */
  async #wait(attempt: Attempt, queue: Queue, mine: Node, decision: Decision): Promise<Busy | undefined> {
    const { claim, waiting } = attempt
    const { name, id } = claim
    const { ahead, holders } = decision
    const [beyond, before] = [ahead.at(-2), ahead.at(-1)]
    // A claim of limit 1 must wait until all holders are gone, so it watches any of them. A claim of a larger limit may fit
    // when one is gone.
    const { limit } = before ?? mine
    const blockers = beyond ? [beyond] : limit === 1 ? holders.slice(-1) : holders
    // This waiter also asks 100 ms after the holders are gone, in case the waiter before it hangs. It sets that watch while
    // they still hold: the claim before it may hold too briefly for this waiter to ask.
    const delay = before ? TURN : 0
    const connection = await waiting.connection(0)
    const position = waiting.positions.get(id)
    if (position) position.behind = before ?? blockers.at(-1)
    waiting.watches.listen(id)
    const arming =
      blockers.length > MOST_WATCHES
        ? [waiting.armAll(connection, name, queue, id, delay)]
        : blockers.map(node => waiting.arm(connection, name, node.name, id, delay))
    if (before) arming.unshift(waiting.arm(connection, name, before.name, id, 0))
    const [busy, ...armed] = await Promise.all([this.#busy(attempt, queue, decision), ...arming])
    if (armed.slice(0, before ? 1 : undefined).includes(false)) return undefined
    const kept = position?.node?.name === mine.name
    // The core does not ask for a kept waiter at the end of its grace period.
    if (kept && busy.retryAfter < positionLifetime(claim.ttl) / 3) waiting.watches.wake(id, busy.retryAfter)
    return { ...busy, listens: true, kept }
  }

  async #busy({ claim, group, waiting }: Attempt, queue: Queue, { answer }: Decision): Promise<Busy> {
    const { name, ttl } = claim
    const holding = queue.holders.slice(0, 1)
    const [holder] = await recordsOf(group, await group.connection(0), this.#settings.paths, name, holding)
    const { retryAfter, ahead } = answer.held ? { retryAfter: 0, ahead: 0 } : answer
    return {
      held: false,
      // Asking also keeps the session of a waiter alive. A node has no end time.
      retryAfter: Math.min(retryAfter, claim.queue ? waiting.session.timeout / 3 : (holder?.remaining ?? ttl)),
      ahead,
      holder,
    }
  }

  #isBehindOwn({ claim: { name, id }, group, waiting }: Attempt): boolean {
    return !this.#groups.of(id) && (group.positions.isQueued(name) || waiting.positions.isQueued(name))
  }

  /** The session in which the claim has a node, or will have one. */
  #homeOf({ claim: { id }, group }: Attempt): Group {
    return this.#groups.of(id) ?? group
  }

  /** The claim keeps its sessions, unless its new ttl needs a longer session to hold. */
  #sessionsFor({ id, ttl }: Claim): { group: Group; waiting: Group } {
    const known = this.#groups.of(id)
    const wanted = this.#groups.for(ttl)
    const isWaiting = known?.positions.get(id)?.node?.kind === 'w'
    return {
      group: known && known.session.timeout >= wanted.session.timeout ? known : wanted,
      waiting: isWaiting ? known : this.#groups.toWait(ttl),
    }
  }
}
