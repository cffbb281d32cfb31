import { invalid } from '../../contract/check.ts'
import type { Claim, ClaimKey } from '../../contract/store.ts'
import { LONGEST_REQUEST, roundTripOf } from '../../contract/time.ts'
import { Checks } from './checks.ts'
import type { Connection } from './connection.ts'
import { isRefused, Refused } from './failure.ts'
import { holderAfter, type Node, newNode, nodeInPlace, parseNode, type Queue, tombstone } from './nodes.ts'
import { Parents } from './parents.ts'
import type { Asked, Held, Place, Settings } from './place.ts'
import { isWithdrawn, NOTHING, Places } from './places.ts'
import {
  checkStep,
  code,
  create,
  createStep,
  deleteStep,
  exists,
  getChildren,
  multi,
  type Request,
  remove,
  setDataStep,
} from './protocol.ts'
import { Queues } from './queues.ts'
import { dataOf } from './record.ts'
import { type Listener, LONGEST_SESSION, Session, sessionNeeded } from './session.ts'
import { Tombstones } from './tombstones.ts'
import { Watches } from './watches.ts'

/** Receives the events of claims, by their ids. */
export interface GroupListener {
  /** A waiter should ask again after `delay` ms. */
  wake(id: string, delay: number): void
  /** A lease is over. Called before another claim can acquire the name. */
  lose(id: string): void
  /** A name is held. */
  hold(name: string): void
}

/**
 * The claims whose leases share one session. Requests of any claim keep the session alive, so the nodes of abandoned
 * claims are deleted before anything else is sent. If a node is unknown, one sweep finds it and the next deletes it.
 */
export class Group implements Listener {
  readonly session: Session
  readonly #watches: Watches
  readonly places: Places
  readonly #settings: Settings
  readonly #tombstones = new Tombstones()
  readonly #parents: Parents
  readonly queues: Queues
  readonly #checks = new Checks(this)
  readonly #lose: GroupListener['lose']
  readonly #hold: GroupListener['hold']
  #sweepAt = 0
  /** Leases that are being moved to this session. */
  #arriving = 0

  constructor(settings: Settings, timeout: number, { wake, lose, hold }: GroupListener) {
    this.#settings = settings
    this.#watches = new Watches(wake)
    this.places = new Places(settings.clock, this.#watches)
    this.#lose = lose
    this.#hold = hold
    const { paths, acl } = settings
    this.#parents = new Parents(paths, acl, (connection, request) => this.send(connection, request))
    this.queues = new Queues(paths, (connection, request) => this.send(connection, request))
    this.session = new Session(settings.ensemble, timeout, settings.clock, this)
  }

  /** A connection for claims of this ttl. See `Session.connection`. */
  async connection(least: number, ttl = 0): Promise<Connection> {
    const connection = await this.session.connection(least)
    const { timeout } = this.session
    if (timeout < Math.min(sessionNeeded(ttl), LONGEST_SESSION)) {
      const longest = Math.floor(0.6 * timeout)
      const limit = `the server grants sessions of at most ${timeout} ms, so the ttl can be at most ${longest} ms`
      throw invalid(`${limit}: request less, or raise maxSessionTimeout in its configuration`)
    }
    this.#sweep(connection)
    return connection
  }

  send<Answer>(connection: Connection, request: Request<Answer>): Promise<Answer> {
    return this.session.send(connection, request)
  }

  /** Creates a node for the claim at the end of the queue, and reads the queue. */
  async put(connection: Connection, claim: Claim, kind: 'h' | 'w'): Promise<{ place: Place; queue: Queue }> {
    const { name, id } = claim
    const { paths, acl } = this.#settings
    const place = this.places.of(claim)
    // Nothing that was true of an earlier node is true of this one.
    this.#watches.forget(id)
    Object.assign(place, NOTHING)
    const creation = create(
      paths.node(name, newNode(kind, id, roundTripOn(connection, claim))),
      dataOf(claim),
      acl,
      'ephemeral sequential',
    )
    const forgetIfRefused = (error: unknown): never => {
      if (isRefused(error)) this.places.forget(place)
      throw error
    }
    const [created, seen] = await this.#parents
      .make(connection, name, creation, () => this.queues.look(connection, name))
      .catch(forgetIfRefused)
    if (created.status === 'rejected') return forgetIfRefused(created.reason)
    const { path, stat } = created.value
    // A transaction that was in flight may have set the rest meanwhile.
    Object.assign(place, { ...NOTHING, node: parseNode(path.slice(path.lastIndexOf('/') + 1)), czxid: stat.czxid })
    if (seen.status === 'rejected') throw seen.reason // the withdrawal deletes the node
    return { place, queue: seen.value }
  }

  /**
   * Replaces the node of the claim and deletes those ahead of it, in one transaction. Its number is the token of a claim
   * that holds by it. The node of the name keeps it, so that no older node counts as a later grant. A claim that `held`
   * keeps its token and its note. `undefined` if one of these nodes is gone, or its note has changed.
   */
  async take(
    connection: Connection,
    { claim, signal }: Asked,
    { from, ahead, kind, held }: { from: Node; ahead: readonly Node[]; kind: 'h' | 'w'; held: Held | undefined },
  ): Promise<Place | undefined> {
    signal.throwIfAborted() // its withdrawal may have read the queue already, and would miss the new node
    const { name } = claim
    const { paths, acl } = this.#settings
    const token = held?.token
    const node = nodeInPlace(kind, kind === 'h' ? from : { ...from, roundTrip: roundTripOn(connection, claim) }, token)
    const path = paths.node(name, node)
    const before = this.places.get(claim.id)?.node
    const place = this.places.of(claim)
    place.node = undefined
    const steps = ahead.map(each => deleteStep(paths.node(name, each.name)))
    steps.push(deleteStep(paths.node(name, from.name), held?.version))
    steps.push(createStep(path, dataOf({ ...claim, note: held?.note ?? claim.note }), acl, 'ephemeral'))
    const isHandedOn = kind === 'h' && token === undefined
    if (isHandedOn) steps.push(setDataStep(paths.name(name), ''))
    const sending = this.send(connection, multi(steps))
    if (kind === 'h') this.#follow(connection, paths.node(name, from.name), node)
    if (held) this.#arriving += 1
    try {
      const done = await sending
      const failed = done.find(({ error }) => error !== 0)
      if (!failed) {
        place.node = parseNode(node)
        place.token = isHandedOn ? done.at(-1)?.stat?.mzxid : token
        return place
      }
      place.node ??= before // another request for the claim may have set it meanwhile
      if (!place.node) this.places.forget(place)
      if (failed.error === code.noNode || failed.error === code.badVersion) return undefined
      throw new Refused(failed.error)
    } finally {
      if (held) this.#arriving -= 1
    }
  }

  /** Does the node of this claim still exist? Simultaneous checks share a transaction. */
  check(place: Place, least: number, signal: AbortSignal): Promise<boolean> {
    return this.#checks.add(this.#settings.paths.node(place.name, place.node?.name ?? ''), least, signal)
  }

  /** Deletes nodes of one name. True if any existed. */
  async delete(connection: Connection, name: string, nodes: readonly Node[]): Promise<boolean> {
    const { paths } = this.#settings
    const answers = await Promise.all(
      nodes.map(node =>
        this.send(connection, remove(paths.node(name, node.name))).then(
          () => true,
          error => {
            if (isRefused(error, code.noNode)) return false
            throw error
          },
        ),
      ),
    )
    return answers.includes(true)
  }

  /** Deletes all nodes of a claim, of any session. If there are none, those that come within 5 s are refused. */
  async withdraw(connection: Connection, { name, id }: ClaimKey): Promise<'released' | 'gone'> {
    const { paths, acl } = this.#settings
    const path = paths.node(name, tombstone(id))
    const creation = create(path, '', acl, 'ephemeral')
    this.#tombstones.add(path, this.#now() + LONGEST_REQUEST) // its answer may be lost
    const [created, seen] = await this.#parents.make(connection, name, creation, () =>
      this.queues.look(connection, name),
    )
    if (created.status === 'rejected' && !isRefused(created.reason, code.nodeExists)) throw created.reason
    if (seen.status === 'rejected') throw seen.reason
    const nodes = seen.value.of(id)
    if (await this.delete(connection, name, nodes)) {
      this.#tombstones.end(path)
      this.#sweep(connection, true)
    }
    // If another client deleted them first, that may have ended the tombstone.
    return nodes.length > 0 ? 'released' : 'gone'
  }

  /** From now on `id` is woken when this node is deleted. `false`: it is gone already. */
  async arm(connection: Connection, name: string, node: string, id: string, delay: number): Promise<boolean> {
    const path = this.#settings.paths.node(name, node)
    this.#watches.add(path, id, delay)
    try {
      await this.send(connection, getChildren(path, true))
      return true
    } catch (error) {
      this.#watches.tell(path)
      if (isRefused(error, code.noNode)) return false
      throw error
    }
  }

  onEvent(path: string, connection: Connection): void {
    const gone = parseNode(path.slice(path.lastIndexOf('/') + 1))
    if (gone?.kind === 'w') this.#follow(connection, path, holderAfter(gone))
    this.#watches.tell(path)
  }

  onDisconnect(): void {
    this.#watches.tellAll()
    this.#parents.clear()
  }

  /** Finds the nodes of requests whose answers were lost. Deletes those that were withdrawn meanwhile, and second nodes of a claim. */
  async recover(connection: Connection): Promise<void> {
    const lost = this.places.all().filter(place => !place.node || isWithdrawn(place))
    if (lost.length === 0) return
    await connection.send(multi([checkStep(this.#settings.paths.root)]))
    const find = (place: Place): Promise<void> => this.#find(connection, place).catch(unlessRefused)
    await Promise.all(lost.map(find))
  }

  /** The session is over, and with it all its leases. */
  end(): void {
    for (const { id, token } of this.places.all()) if (token !== undefined) this.#lose(id)
  }

  /** Ends the session if none of its claims holds, or may hold. */
  async close(): Promise<void> {
    await this.session.close(!this.places.isHolding() && this.#arriving === 0)
  }

  /** The waiters of this session behind a node watch the one that replaces it, and need not ask. */
  #follow(connection: Connection, path: string, successor: string): void {
    for (const [id, delay] of this.#watches.at(path)) {
      const place = this.places.get(id)
      if (!place || (delay === 0 && !this.#isBehind(place, path))) continue
      this.#watches.remove(path, id)
      if (delay === 0) place.behind = parseNode(successor)
      this.arm(connection, place.name, successor, id, delay).then(
        isHeld => isHeld && this.#hold(place.name),
        () => {}, // it is woken
      )
    }
  }

  #isBehind({ name, behind }: Place, path: string): boolean {
    return behind !== undefined && this.#settings.paths.node(name, behind.name) === path
  }

  #now(): number {
    return this.#settings.clock.now()
  }

  async #find(connection: Connection, place: Place): Promise<void> {
    const { name, id } = place
    const nodes = (await this.queues.look(connection, name)).of(id)
    if (isWithdrawn(place)) await this.delete(connection, name, nodes)
    if (isWithdrawn(place)) return this.places.forget(place)
    const own = await this.#own(connection, name, nodes)
    // The first one counts, whichever session it belongs to.
    const first = own[0]?.node === nodes[0] ? own.shift() : undefined
    const others = own.map(each => each.node)
    await this.delete(connection, name, others).catch(unlessRefused)
    if (first) Object.assign(place, first)
    else this.places.forget(place)
  }

  /** Those of the nodes that this session has. */
  async #own(connection: Connection, name: string, nodes: readonly Node[]): Promise<{ node: Node; czxid: bigint }[]> {
    const found = await Promise.all(
      nodes.map(async node => {
        const stat = await connection.send(exists(this.#settings.paths.node(name, node.name))).catch(error => {
          if (isRefused(error, code.noNode)) return undefined
          throw error
        })
        return stat?.owner === this.session.id ? [{ node, czxid: stat.czxid }] : []
      }),
    )
    return found.flat()
  }

  /** Deletes the nodes of abandoned claims, at most every sixteenth of the session. */
  #sweep(connection: Connection, atOnce = false): void {
    const now = this.#now()
    if (now < this.#sweepAt && !atOnce) return
    this.#sweepAt = now + this.session.timeout / 16
    for (const place of this.places.lapsed()) {
      // A forward step of the wall clock counts as sleep, and no timer of the holder notices it.
      if (place.token !== undefined) this.#lose(place.id)
      const cleared = place.node ? this.#clear(connection, place, place.node) : this.#locate(connection, place)
      cleared.catch(() => {}) // the next sweep tries again
    }
    this.#tombstones.sweep(now, path => this.send(connection, remove(path)))
  }

  /** Deletes the node of an abandoned claim. There may be another, which the next sweep looks for. */
  async #clear(connection: Connection, place: Place, node: Node): Promise<void> {
    await this.delete(connection, place.name, [node])
    if (place.node !== node) return // the claim asked again
    this.#watches.forget(place.id)
    Object.assign(place, NOTHING)
    if (place.watch?.aborted === false) this.#watches.wake(place.id, 0) // a step of the wall clock woke no timer of it
  }

  /** Finds the node of an abandoned claim, which the next sweep deletes. A claim that has none is forgotten. */
  async #locate(connection: Connection, place: Place): Promise<void> {
    const { name, id, until } = place
    const queue = await this.queues.look(connection, name)
    const [own] = await this.#own(connection, name, queue.of(id))
    if (place.until !== until || place.node) return // it asked again
    if (own) Object.assign(place, own)
    else this.places.forget(place)
  }
}

/** What the server refuses for one name must not keep the session from its other requests. */
function unlessRefused(error: unknown): void {
  if (!isRefused(error)) throw error
}

/** The round trip of a waiter in ms. After a notification it reads the queue, and then takes the name: two requests. */
function roundTripOn(connection: Connection, { roundTrip = 2 * connection.roundTrip }: Claim): number {
  return roundTripOf(roundTrip)
}
