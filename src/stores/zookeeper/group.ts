import { invalid } from '../../contract/check.ts'
import type { Claim } from '../../contract/store.ts'
import { Checks } from './checks.ts'
import type { Connection } from './connection.ts'
import { isRefused, Refused } from './failure.ts'
import { LostNodes, unlessRefused } from './lost-nodes.ts'
import { holderAfter, type Node, newNode, parseNode, type Queue, replacing } from './nodes.ts'
import { Parents } from './parents.ts'
import type { Asked, Granted, Held, Position } from './position.ts'
import { isWithdrawn, NOTHING, Positions } from './positions.ts'
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
  setDataStep,
} from './protocol.ts'
import { Queues } from './queues.ts'
import { dataOf, nameDataOf } from './record.ts'
import { type Listener, LONGEST_SESSION, Session, sessionNeeded } from './session.ts'
import type { Settings } from './settings.ts'
import { Sweep } from './sweep.ts'
import { Watches } from './watches.ts'
import { Withdrawals } from './withdrawals.ts'

/** Receives the events of claims. */
export interface GroupListener {
  /** A waiter should ask again after `delay` ms. */
  wake(id: string, delay: number): void
  /** A lease has ended. This is called before another claim can acquire the name. */
  lose(id: string): void
  /** The name has a holder. */
  hold(name: string): void
}

/**
 * The claims whose leases share one session. A request of any claim keeps the session alive. So the nodes of abandoned
 * claims are deleted before anything else is sent.
 */
export class Group implements Listener {
  readonly session: Session
  readonly watches: Watches
  readonly positions: Positions
  readonly #settings: Settings
  readonly withdrawals: Withdrawals
  readonly #parents: Parents
  readonly queues: Queues
  readonly #checks = new Checks(this)
  readonly #lost: LostNodes
  readonly #lose: GroupListener['lose']
  readonly #hold: GroupListener['hold']
  readonly #sweep: Sweep
  /** The nodes that transactions without an answer replace, by name, each with the name of its successor. */
  readonly #replaced = new Map<string, string>()

  constructor(settings: Settings, timeout: number, { wake, lose, hold }: GroupListener) {
    this.#settings = settings
    this.watches = new Watches(wake)
    this.positions = new Positions(settings.clock, this.watches)
    this.#lose = lose
    this.#hold = hold
    const { paths, acl } = settings
    this.#parents = new Parents(paths, acl, (connection, request) => this.send(connection, request))
    this.#lost = new LostNodes(paths, this)
    this.withdrawals = new Withdrawals(settings, this.#parents, this)
    this.queues = new Queues(paths, (connection, request) => this.send(connection, request))
    this.#sweep = new Sweep(settings.clock, this, this.#lost, lose)
    this.session = new Session(settings.ensemble, timeout, settings.clock, this)
  }

  /** Resolves to a connection for claims of this ttl. See `Session.connection`. */
  async connection(least: number, ttl = 0): Promise<Connection> {
    const connection = await this.session.connection(least)
    const { timeout } = this.session
    if (timeout < Math.min(sessionNeeded(ttl), LONGEST_SESSION)) {
      const longest = Math.floor(0.6 * timeout)
      const limit = `the server grants sessions of at most ${timeout} ms, so the ttl can be at most ${longest} ms`
      throw invalid(`${limit}: request less, or raise maxSessionTimeout in its configuration`)
    }
    this.#sweep.run(connection)
    return connection
  }

  send<Answer>(connection: Connection, request: Request<Answer>): Promise<Answer> {
    return this.session.send(connection, request)
  }

  /** Creates a node for the claim behind all others, and reads the queue. `roundTrip`: milliseconds. */
  async put(
    connection: Connection,
    claim: Claim,
    kind: 'c' | 'w' | 't',
    roundTrip = 0,
    signal?: AbortSignal,
  ): Promise<{ position: Position; queue: Queue }> {
    const { name, id } = claim
    const { paths, acl } = this.#settings
    const position = this.positions.of(claim)
    // What was true of an earlier node does not apply to this one.
    this.watches.forget(id)
    Object.assign(position, NOTHING)
    if (kind !== 'w') this.positions.keep(claim, true)
    const creation = create(
      paths.node(name, newNode(kind, claim, roundTrip)),
      dataOf(claim),
      acl,
      'ephemeral sequential',
    )
    const forgetIfRefused = (error: unknown): never => {
      if (isRefused(error)) this.positions.forget(position)
      throw error
    }
    const [created, seen] = await this.#parents
      .make(connection, name, creation, () => this.queues.look(connection, name), signal)
      .catch(forgetIfRefused)
    if (created.status === 'rejected') return forgetIfRefused(created.reason)
    const { path, stat } = created.value
    // A transaction that was in flight may have set the other fields meanwhile.
    Object.assign(position, { ...NOTHING, node: parseNode(path.slice(path.lastIndexOf('/') + 1)), czxid: stat.czxid })
    if (seen.status === 'rejected') throw seen.reason // the withdrawal deletes the node
    return { position, queue: seen.value }
  }

  /**
   * Replaces the node of the claim, in one transaction. Resolves to `undefined` if the node is gone, or if what was read
   * has changed.
   * - `granted`: the claim holds these slots. The transaction id is its token. It fails if the data of the name was written
   * after it was read, so slots are granted one after the other.
   * - `held`: the lease moves to this session and keeps its token, its slots and its note. It fails if the note has
   * changed.
   * - Neither: the claim waits. A waiter that was passed counts again.
   */
  async take(
    connection: Connection,
    { claim, signal, at }: Asked,
    { from, held, granted }: { readonly from: Node; readonly held?: Held | undefined; readonly granted?: Granted },
  ): Promise<Position | undefined> {
    signal.throwIfAborted() // a withdrawal that has already read the queue would miss the new node
    const { name } = claim
    const { paths, acl } = this.#settings
    const slots = granted?.slots ?? held?.node.slots
    const node = replacing(from, slots ? { kind: 'h', token: held?.token, slots } : { kind: 'w' })
    const before = this.positions.get(claim.id)?.node
    const position = this.positions.of(claim)
    position.node = undefined
    if (held) position.mayHold = true
    // Also if the answer is late or lost, the holder may count on its lease until then.
    if (held ?? granted) position.until = Math.max(position.until, at + claim.ttl)
    const steps = [
      deleteStep(paths.node(name, from.name), held?.version),
      createStep(paths.node(name, node), dataOf({ ...claim, note: held?.note ?? claim.note }), acl, 'ephemeral'),
    ]
    if (granted) steps.push(setDataStep(paths.name(name), nameDataOf(granted.passed), granted.version))
    const sending = this.send(connection, multi(steps))
    this.#replaced.set(from.name, node)
    const settle = (): void => {
      if (this.#replaced.get(from.name) === node) this.#replaced.delete(from.name)
    }
    sending.then(settle, error => isRefused(error) && settle())
    if (held || (granted && from.limit === 1)) this.#follow(connection, paths.node(name, from.name), node)
    const done = await sending
    const failed = done.find(({ error }) => error !== 0)
    if (!failed) {
      position.node = parseNode(node)
      const token = granted ? done.at(-1)?.stat?.mzxid : held?.token
      position.token = token
      if (token !== undefined) position.czxid = token
      return position
    }
    position.node ??= before // another request for the claim may have set it meanwhile
    if (!position.node && !held) this.positions.forget(position) // another request may have moved the lease here
    if (failed.error === code.noNode || failed.error === code.badVersion) return undefined
    throw new Refused(failed.error)
  }

  /**
   * May a transaction of this session still replace the node, because its answer has not come? The node may be of another
   * session, whose requests may overtake the transaction.
   */
  mayReplace({ name }: Node): boolean {
    return this.#replaced.has(name)
  }

  /** Does the claim have a position, and was it not woken since it last asked? */
  isWaiting(id: string): boolean {
    return this.positions.get(id)?.node?.kind === 'w' && !this.watches.isTold(id)
  }

  /** Does the node of this claim still exist? Simultaneous checks share a transaction. */
  check(position: Position, least: number, signal: AbortSignal): Promise<boolean> {
    return this.#checks.add(this.#settings.paths.node(position.name, position.node?.name ?? ''), least, signal)
  }

  /** Deletes nodes of one name. Resolves to true if any of them existed. */
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

  /** From now on, `id` is woken when this node is deleted. Resolves to `false` if the node is already gone. */
  arm(connection: Connection, name: string, node: string, id: string, delay: number): Promise<boolean> {
    return this.#arm(connection, this.#settings.paths.node(name, node), id, delay)
  }

  /**
   * Like `arm`, but for any change of the nodes of a name. Resolves to `false` if they have changed since `queue` was read.
   */
  armAll(connection: Connection, name: string, queue: Queue, id: string, delay: number): Promise<boolean> {
    const path = this.#settings.paths.name(name)
    return this.#arm(connection, path, id, delay, ({ pzxid }) => pzxid === queue.parent.changed)
  }

  async #arm(
    connection: Connection,
    path: string,
    id: string,
    delay: number,
    isCurrent?: (stat: Stat) => boolean,
  ): Promise<boolean> {
    // A watch that was set before reports the next change, and then ends. It may have been set after other changes.
    const isWatched = this.watches.at(path).length > 0
    this.watches.add(path, id, delay)
    if (isWatched && !isCurrent) return true
    try {
      const { stat } = await this.send(connection, getChildren(path, true))
      const isMissed = isCurrent?.(stat) === false
      if (isMissed) this.watches.tell(path)
      return !isMissed
    } catch (error) {
      this.watches.tell(path)
      if (isRefused(error, code.noNode)) return false
      throw error
    }
  }

  onEvent(path: string, connection: Connection): void {
    const gone = parseNode(path.slice(path.lastIndexOf('/') + 1))
    if (gone?.kind === 'w' && gone.limit === 1) this.#follow(connection, path, holderAfter(gone))
    this.watches.tell(path)
  }

  onDisconnect(): void {
    this.watches.tellAll()
    this.#parents.clear()
  }

  /**
   * Finds the nodes of requests whose answers were lost. Deletes nodes that were withdrawn meanwhile, and second nodes of a
   * claim.
   */
  async recover(connection: Connection): Promise<void> {
    const lost = this.positions.all().filter(position => !position.node || isWithdrawn(position))
    if (lost.length === 0 && this.#replaced.size === 0) return
    await connection.send(multi([checkStep(this.#settings.paths.root)]))
    this.#replaced.clear() // the server refuses what was sent before and is not carried out by now
    const find = (position: Position): Promise<void> => this.#lost.find(connection, position).catch(unlessRefused)
    await Promise.all(lost.map(find))
  }

  /** The session has ended, and all its leases with it. */
  end(): void {
    for (const { id, token } of this.positions.all()) if (token !== undefined) this.#lose(id)
  }

  /** Ends the session unless one of its claims holds or may hold. */
  async close(): Promise<void> {
    await this.session.close(!this.positions.isHolding())
  }

  /**
   * The waiters of this session that watch a node watch its successor from now on, and need not ask. This applies only to
   * waiters that are being watched: a request for others would keep the session, and so the positions of waiters that have
   * stopped asking.
   */
  #follow(connection: Connection, path: string, successor: string): void {
    for (const [id, delay] of this.watches.at(path)) {
      const position = this.positions.get(id)
      if (position?.watch?.aborted !== false || (delay === 0 && !this.#isBehind(position, path))) continue
      this.watches.remove(path, id)
      if (delay === 0) position.behind = parseNode(successor)
      this.arm(connection, position.name, successor, id, delay).then(
        isHeld => isHeld && this.#hold(position.name),
        () => {}, // the waiter is woken
      )
    }
  }

  #isBehind({ name, behind }: Position, path: string): boolean {
    return behind !== undefined && this.#settings.paths.node(name, behind.name) === path
  }
}
