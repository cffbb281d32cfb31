import { invalid } from '../../contract/check.ts'
import type { Claim, ClaimKey } from '../../contract/store.ts'
import type { Clock } from '../../contract/time.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import { placeLifetime } from '../shared/queue.ts'
import { Checks } from './checks.ts'
import type { Connection } from './connection.ts'
import { isRefused, Refused } from './failure.ts'
import { Names } from './names.ts'
import { Line, type Node, newNode, nodeInPlace, parseNode, tombstone } from './nodes.ts'
import type { Paths } from './paths.ts'
import {
  type Acl,
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
import { type Details, dataOf } from './record.ts'
import { type Ensemble, type Listener, LONGEST_SESSION, needed, Session } from './session.ts'
import { Tombstones } from './tombstones.ts'
import { Watches } from './watches.ts'

/** A claim that this session has a node for, or may have. */
export interface Place {
  readonly name: string
  readonly id: string
  /** `undefined` while it is not known what became of a request. */
  node: Node | undefined
  /** The transaction that put the node. */
  czxid: bigint
  /** Of a claim that holds. */
  token: bigint | undefined
  /** By the clock; nobody wants it any more after that. */
  until: number
}

/** A claim that holds, wherever it was put: by what node, and what that says. */
export interface Held extends Details {
  readonly node: Node
  readonly token: bigint
  /** How often its note was changed. */
  readonly version: number
}

/** What is done for one claim at one time. */
export interface Asked {
  readonly claim: Claim
  readonly signal: AbortSignal
  /** By the clock, before anything was sent. */
  readonly at: number
}

/** What the nodes of all groups have in common. */
export interface Settings {
  readonly ensemble: Ensemble
  readonly paths: Paths
  readonly acl: Acl
  readonly clock: Clock
}

/** What is told of claims, by their ids. */
export interface GroupListener {
  /** One that waits should ask again, after so many milliseconds. */
  wake(id: string, delay: number): void
  /** A lease is over; before anybody else can have its name. */
  lose(id: string): void
}

const WITHDRAWN = Number.NEGATIVE_INFINITY

/**
 * The claims whose leases live as long as one session. The session lives while any of them is asked for, so the nodes of
 * those that are not wanted any more are deleted before anything else is sent.
 */
export class Group implements Listener {
  readonly session: Session
  readonly places: Map<string, Place> = new Map()
  readonly #settings: Settings
  readonly #watches: Watches
  readonly #tombstones = new Tombstones()
  readonly #names: Names
  /** Those that leave at the end of this turn of the event loop. */
  readonly #looks = new Map<string, Promise<Line>>()
  readonly #checks = new Checks(this)
  readonly #lose: GroupListener['lose']
  #sweepAt = 0

  constructor(settings: Settings, timeout: number, { wake, lose }: GroupListener) {
    this.#settings = settings
    this.#watches = new Watches(wake)
    this.#lose = lose
    const { paths, acl } = settings
    this.#names = new Names(paths, acl, (connection, request) => this.send(connection, request))
    this.session = new Session(settings.ensemble, timeout, settings.clock, this)
  }

  /** The claim is asked for: its place here, if it has one, is kept for as long as a place lasts. */
  want({ id, ttl }: Claim): Place | undefined {
    const place = this.places.get(id)
    if (place && place.until !== WITHDRAWN) place.until = Math.max(place.until, this.#now() + placeLifetime(ttl))
    return place
  }

  /** A connection that may be used for claims of this ttl; see `Session.connection`. */
  async connection(least: number, ttl = 0): Promise<Connection> {
    const connection = await this.session.connection(least)
    const { timeout } = this.session
    if (timeout < Math.min(needed(ttl), LONGEST_SESSION)) {
      const longest = Math.floor(0.6 * timeout)
      const says = `the server grants sessions of at most ${timeout} ms, so that ttl can be at most ${longest} ms`
      throw invalid(`${says}: ask for less, or raise maxSessionTimeout in its configuration`)
    }
    this.#sweep(connection)
    return connection
  }

  send<Answer>(connection: Connection, request: Request<Answer>): Promise<Answer> {
    return this.session.send(connection, request)
  }

  /** Those who have claims to this name, as it is after all that was sent before. Who asks in one turn shares an answer. */
  look(connection: Connection, name: string): Promise<Line> {
    const shared = this.#looks.get(name)
    if (shared) return shared
    const look = new Promise<Line>((resolve, reject) => {
      process.nextTick(() => {
        this.#looks.delete(name)
        this.#look(connection, name).then(resolve, reject)
      })
    })
    this.#looks.set(name, look)
    return look
  }

  /** As `look`, with everything that was done before it was called, wherever that was. */
  async lookAtNewest(connection: Connection, name: string): Promise<Line> {
    // Only a transaction passes through the leader and a majority; what is read after it is no older.
    const barrier = multi([checkStep(this.#settings.paths.root)])
    const [, line] = await Promise.all([this.send(connection, barrier), this.look(connection, name)])
    return line
  }

  /** Puts a node for the claim at the end of the line, and looks at that. */
  async put(connection: Connection, claim: Claim, kind: 'h' | 'w'): Promise<{ place: Place; line: Line }> {
    const { name, id } = claim
    const { paths, acl } = this.#settings
    const place = this.#place(claim)
    const creation = create(paths.node(name, newNode(kind, id)), dataOf(claim), acl, 'ephemeral sequential')
    const [created, line] = await this.#names.make(connection, name, creation, () => this.look(connection, name))
    if (created.status === 'rejected') {
      if (isRefused(created.reason)) this.forget(place)
      throw created.reason
    }
    const { path, stat } = created.value
    place.node = parseNode(path.slice(path.lastIndexOf('/') + 1))
    place.czxid = stat.czxid
    return { place, line }
  }

  /**
   * Takes the place of a node of the claim, and out of the line those before it, in one transaction. That is the token of
   * a claim which holds by it, and is kept with the name, so that no node that was made before counts as a later grant.
   * One that `held` keeps its token and its note. `undefined` if one of these nodes was gone, or has another note by now.
   */
  async take(
    connection: Connection,
    { claim, signal }: Asked,
    { from, ahead, kind, held }: { from: Node; ahead: readonly Node[]; kind: 'h' | 'w'; held: Held | undefined },
  ): Promise<Place | undefined> {
    signal.throwIfAborted() // its withdrawal may have looked already, and would miss what takes the place now
    const { name } = claim
    const { paths, acl } = this.#settings
    const token = held?.token
    const node = nodeInPlace(kind, from, token)
    const path = paths.node(name, node)
    const before = this.places.get(claim.id)?.node
    const place = this.#place(claim)
    place.node = undefined
    const steps = ahead.map(each => deleteStep(paths.node(name, each.name)))
    steps.push(deleteStep(paths.node(name, from.name), held?.version))
    steps.push(createStep(path, dataOf({ ...claim, note: held?.note ?? claim.note }), acl, 'ephemeral'))
    const isHandedOn = kind === 'h' && token === undefined
    if (isHandedOn) steps.push(setDataStep(paths.name(name), ''))
    const done = await this.send(connection, multi(steps))
    const failed = done.find(({ error }) => error !== 0)
    if (failed) {
      place.node ??= before // another request for the claim may have set it meanwhile
      if (!place.node) this.forget(place)
      if (failed.error === code.noNode || failed.error === code.badVersion) return undefined
      throw new Refused(failed.error)
    }
    place.node = parseNode(node)
    place.token = isHandedOn ? done.at(-1)?.stat?.mzxid : token
    return place
  }

  /** Is the node of this place still there? Together with others that ask at the same time, in one transaction. */
  check(place: Place, least: number, signal: AbortSignal): Promise<boolean> {
    return this.#checks.add(this.#settings.paths.node(place.name, place.node?.name ?? ''), least, signal)
  }

  /** Deletes nodes of one name; were any there? */
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

  /** Deletes all nodes of a claim, wherever it was put; if there are none, refuses those that come within 5 s. */
  async withdraw(connection: Connection, { name, id }: ClaimKey): Promise<'released' | 'gone'> {
    const { paths, acl } = this.#settings
    const path = paths.node(name, tombstone(id))
    const creation = create(path, '', acl, 'ephemeral')
    this.#tombstones.add(path, this.#now() + LONGEST_REQUEST) // its answer may be lost
    const [created, line] = await this.#names.make(connection, name, creation, () => this.look(connection, name))
    if (created.status === 'rejected' && !isRefused(created.reason, code.nodeExists)) throw created.reason
    const nodes = line.of(id)
    const isFound = nodes.length > 0
    if (isFound) this.#tombstones.end(path)
    const isDeleted = await this.delete(connection, name, nodes)
    if (isFound) this.#sweep(connection, true)
    return isDeleted ? 'released' : 'gone'
  }

  /** Nobody wants it any more: its node is deleted as soon as the server can be asked. */
  abandon(place: Place): void {
    place.until = WITHDRAWN
    place.token = undefined
  }

  forget(place: Place): void {
    if (this.places.get(place.id) !== place) return
    this.places.delete(place.id)
    this.#watches.forget(place.id)
  }

  /** From now on `id` is told when this node goes. `false`: it is gone already. */
  async arm(connection: Connection, name: string, node: Node, id: string, delay: number): Promise<boolean> {
    const path = this.#settings.paths.node(name, node.name)
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

  onEvent(path: string): void {
    this.#watches.tell(path)
  }

  onDisconnect(): void {
    this.#watches.tellAll()
    this.#names.clear()
  }

  /** Finds by their claims the nodes of requests whose answers were lost, and deletes what was withdrawn meanwhile. */
  async recover(connection: Connection): Promise<void> {
    const lost = [...this.places.values()].filter(({ node, until }) => !node || until === WITHDRAWN)
    if (lost.length === 0) return
    await connection.send(multi([checkStep(this.#settings.paths.root)]))
    await Promise.all(lost.map(place => this.#find(connection, place)))
  }

  /** The session is over, and with it all that was held. */
  end(): void {
    for (const { id, token } of this.places.values()) if (token !== undefined) this.#lose(id)
  }

  /** Ends the session, and with it all nodes of claims that are not held. */
  async close(): Promise<void> {
    const now = this.#now()
    const holds = [...this.places.values()].some(({ token, until }) => token !== undefined && until > now)
    await this.session.close(!holds)
  }

  #now(): number {
    return this.#settings.clock.now()
  }

  async #look(connection: Connection, name: string): Promise<Line> {
    try {
      const { children, stat } = await this.send(connection, getChildren(this.#settings.paths.name(name)))
      return new Line(children, stat.mzxid, `${stat.czxid} ${stat.aclVersion}`)
    } catch (error) {
      if (isRefused(error, code.noNode)) return new Line([], 0n) // nobody ever had a claim to it
      throw error
    }
  }

  async #find(connection: Connection, place: Place): Promise<void> {
    const { name, id } = place
    const nodes = (await this.look(connection, name)).of(id)
    const [node] = nodes
    if (place.until === WITHDRAWN) await this.delete(connection, name, nodes)
    if (place.until === WITHDRAWN || !node) return this.forget(place)
    const stat = await connection.send(exists(this.#settings.paths.node(name, node.name))).catch(error => {
      if (isRefused(error, code.noNode)) return undefined
      throw error
    })
    if (stat?.owner !== this.session.id) return this.forget(place)
    place.node = node
    place.czxid = stat.czxid
  }

  #place(claim: Claim): Place {
    const { name, id, ttl } = claim
    const place = this.places.get(id) ?? { name, id, node: undefined, czxid: 0n, token: undefined, until: 0 }
    place.until = this.#now() + placeLifetime(ttl)
    this.places.set(id, place)
    return place
  }

  /** A sixteenth of the session is soon enough, and seldom enough to look at all. */
  #sweep(connection: Connection, atOnce = false): void {
    const now = this.#now()
    if (now < this.#sweepAt && !atOnce) return
    this.#sweepAt = now + this.session.timeout / 16
    for (const place of this.places.values()) {
      if (place.until > now || !place.node) continue
      // A step of the wall clock, which counts as sleep, comes to no timer of the holder.
      if (place.token !== undefined) this.#lose(place.id)
      const forget = (): void => this.forget(place)
      this.delete(connection, place.name, [place.node]).then(forget, () => {})
    }
    this.#tombstones.sweep(now, path => this.send(connection, remove(path)))
  }
}
