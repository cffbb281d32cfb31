import { invalid } from '../../contract/check.ts'
import type { Claim, ClaimKey } from '../../contract/store.ts'
import { roundTripOf } from '../../contract/time.ts'
import { Checks } from './checks.ts'
import type { Connection } from './connection.ts'
import { isRefused, Refused } from './failure.ts'
import { LostNodes, unlessRefused } from './lost-nodes.ts'
import { holderAfter, type Node, newNode, nodeInPlace, parseNode, type Queue } from './nodes.ts'
import { Parents } from './parents.ts'
import type { Asked, Granted, Held, Place, Settings } from './place.ts'
import { isWithdrawn, NOTHING, Places } from './places.ts'
import {
  checkStep,
  code,
  create,
  createStep,
  deleteStep,
  getChildren,
  multi,
  type Request,
  remove,
  type Stat,
  setData,
  setDataStep,
} from './protocol.ts'
import { Queues } from './queues.ts'
import { dataOf, nameDataOf } from './record.ts'
import { type Listener, LONGEST_SESSION, Session, sessionNeeded } from './session.ts'
import { Watches } from './watches.ts'
import { Withdrawals } from './withdrawals.ts'

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
  readonly #withdrawals: Withdrawals
  readonly #parents: Parents
  readonly queues: Queues
  readonly #checks = new Checks(this)
  readonly #lost: LostNodes
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
    this.#lost = new LostNodes(paths, this)
    this.#withdrawals = new Withdrawals(settings, this.#parents, this)
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

  /** Creates a node for the claim behind all others, and reads the queue. */
  async put(connection: Connection, claim: Claim, kind: 'c' | 'w' | 't'): Promise<{ place: Place; queue: Queue }> {
    const { name, id } = claim
    const { paths, acl } = this.#settings
    const place = this.places.of(claim)
    // Nothing that was true of an earlier node is true of this one.
    this.#watches.forget(id)
    Object.assign(place, NOTHING)
    const creation = create(
      paths.node(name, newNode(kind, claim, roundTripOn(connection, claim))),
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
   * Replaces the node of the claim, in one transaction. `undefined` if the node is gone, or what was read has changed.
   * - `granted`: it holds these slots. The transaction is its token, and fails if the data of the name was written after it
   *   was read. So slots are granted one after the other.
   * - `held`: it moves to this session, and keeps its token, its slots and its note. That fails if the note has changed.
   * - Neither: it waits.
   */
  async take(
    connection: Connection,
    { claim, signal }: Asked,
    { from, held, granted }: { readonly from: Node; readonly held?: Held | undefined; readonly granted?: Granted },
  ): Promise<Place | undefined> {
    signal.throwIfAborted() // its withdrawal may have read the queue already, and would miss the new node
    const { name } = claim
    const { paths, acl } = this.#settings
    const slots = granted?.slots ?? held?.node.slots
    const node = slots
      ? nodeInPlace(from, { kind: 'h', token: held?.token, slots })
      : nodeInPlace({ ...from, roundTrip: roundTripOn(connection, claim) }, { kind: 'w' })
    const before = this.places.get(claim.id)?.node
    const place = this.places.of(claim)
    place.node = undefined
    const steps = [
      deleteStep(paths.node(name, from.name), held?.version),
      createStep(paths.node(name, node), dataOf({ ...claim, note: held?.note ?? claim.note }), acl, 'ephemeral'),
    ]
    if (granted) steps.push(setDataStep(paths.name(name), nameDataOf(granted.passed), granted.version))
    const sending = this.send(connection, multi(steps))
    if (held || (granted && from.limit === 1)) this.#follow(connection, paths.node(name, from.name), node)
    if (held) this.#arriving += 1
    try {
      const done = await sending
      const failed = done.find(({ error }) => error !== 0)
      if (!failed) {
        place.node = parseNode(node)
        const token = granted ? done.at(-1)?.stat?.mzxid : held?.token
        place.token = token
        if (token !== undefined) place.czxid = token
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

  /** Writes who was passed. False if the data of the name was written after it was read. */
  async pass(connection: Connection, name: string, { passed, version }: Omit<Granted, 'slots'>): Promise<boolean> {
    try {
      await this.send(connection, setData(this.#settings.paths.name(name), nameDataOf(passed), version))
      return true
    } catch (error) {
      if (isRefused(error, code.badVersion, code.noNode)) return false
      throw error
    }
  }

  /** Has the claim a position, and was it not woken since it asked? */
  isWaiting(id: string): boolean {
    return this.places.get(id)?.node?.kind === 'w' && !this.#watches.isTold(id)
  }

  /** A waiter asks, and needs another wake from now on. */
  listen(id: string): void {
    this.#watches.listen(id)
  }

  /** A waiter should ask after `delay` ms. */
  wake(id: string, delay: number): void {
    this.#watches.wake(id, delay)
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

  /** See `Withdrawals.withdraw`. */
  withdraw(connection: Connection, key: ClaimKey): Promise<'released' | 'gone'> {
    return this.#withdrawals.withdraw(connection, key)
  }

  /** From now on `id` is woken when this node is deleted. `false`: it is gone already. */
  arm(connection: Connection, name: string, node: string, id: string, delay: number): Promise<boolean> {
    return this.#arm(connection, this.#settings.paths.node(name, node), id, delay, () => true)
  }

  /** As `arm`, for any change of the nodes of a name. `false`: they have changed since `queue` was read. */
  armAll(connection: Connection, name: string, queue: Queue, id: string, delay: number): Promise<boolean> {
    const path = this.#settings.paths.name(name)
    return this.#arm(connection, path, id, delay, ({ pzxid }) => pzxid === queue.parent.changed)
  }

  async #arm(
    connection: Connection,
    path: string,
    id: string,
    delay: number,
    isCurrent: (stat: Stat) => boolean,
  ): Promise<boolean> {
    // A watch that was set before is told of what follows, and ends when it is told.
    const isWatched = this.#watches.at(path).length > 0
    this.#watches.add(path, id, delay)
    if (isWatched) return true
    try {
      const { stat } = await this.send(connection, getChildren(path, true))
      if (!isCurrent(stat)) this.#watches.tell(path)
      return isCurrent(stat)
    } catch (error) {
      this.#watches.tell(path)
      if (isRefused(error, code.noNode)) return false
      throw error
    }
  }

  onEvent(path: string, connection: Connection): void {
    const gone = parseNode(path.slice(path.lastIndexOf('/') + 1))
    if (gone?.kind === 'w' && gone.limit === 1) this.#follow(connection, path, holderAfter(gone))
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
    const find = (place: Place): Promise<void> => this.#lost.find(connection, place).catch(unlessRefused)
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

  /**
   * The waiters of this session behind a node watch the one that replaces it, and need not ask. Only those that are watched:
   * a request for others would keep the session, and with it the positions of waiters that have stopped asking.
   */
  #follow(connection: Connection, path: string, successor: string): void {
    for (const [id, delay] of this.#watches.at(path)) {
      const place = this.places.get(id)
      if (place?.watch?.aborted !== false || (delay === 0 && !this.#isBehind(place, path))) continue
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

  /** Deletes the nodes of abandoned claims, at most every sixteenth of the session. */
  #sweep(connection: Connection): void {
    const now = this.#now()
    if (now < this.#sweepAt) return
    this.#sweepAt = now + this.session.timeout / 16
    for (const place of this.places.lapsed()) {
      // A forward step of the wall clock counts as sleep, and no timer of the holder notices it.
      if (place.token !== undefined) this.#lose(place.id)
      const cleared = place.node ? this.#clear(connection, place, place.node) : this.#lost.locate(connection, place)
      cleared.catch(() => {}) // the next sweep tries again
    }
    this.#withdrawals.sweep(connection)
  }

  /** Deletes the node of an abandoned claim. There may be another, which the next sweep looks for. */
  async #clear(connection: Connection, place: Place, node: Node): Promise<void> {
    await this.delete(connection, place.name, [node])
    if (place.node !== node) return // the claim asked again
    this.#watches.forget(place.id)
    Object.assign(place, NOTHING)
    if (place.watch?.aborted === false) this.#watches.wake(place.id, 0) // a step of the wall clock woke no timer of it
  }
}

/** The round trip of a waiter in ms. After a notification it reads the queue, and then takes the name: two requests. */
function roundTripOn(connection: Connection, { roundTrip = 2 * connection.roundTrip }: Claim): number {
  return roundTripOf(roundTrip)
}
