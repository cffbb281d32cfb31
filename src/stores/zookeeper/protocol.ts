import { Malformed, type Reader, type Writer } from './jute.ts'

/** Operation codes, from org.apache.zookeeper.ZooDefs.OpCode. */
const op = {
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getAcl: 6,
  getChildren: 8,
  sync: 9,
  check: 13,
  multi: 14,
  create2: 15,
  createContainer: 19,
  multiRead: 22,
  auth: 100,
  close: -11,
} as const
const getChildren2 = 12
/** The types of step results. A create2 may be answered like an older create, whose answer contains only the path. */
const created = 1
const failed = -1

/** Error codes, from org.apache.zookeeper.KeeperException.Code. */
export const code = {
  unimplemented: -6,
  badArguments: -8,
  noNode: -101,
  noAuth: -102,
  badVersion: -103,
  nodeExists: -110,
  sessionExpired: -112,
  authFailed: -115,
  sessionMoved: -118,
} as const

export type Mode = 'persistent' | 'ephemeral' | 'ephemeral sequential'
const modes = { persistent: 0, ephemeral: 1, 'ephemeral sequential': 3 } as const

/** The permissions to read a node and its children, and to create children. */
export const READ = 1
export const CREATE = 4

/** An entry in the access control list of a node. */
export interface Acl {
  readonly permissions: number
  readonly scheme: string
  readonly id: string
}

/** The part of ZooKeeper's `Stat` record that is used. */
export interface Stat {
  /** The transaction that created the node. */
  readonly czxid: bigint
  /** The transaction that last set its data. */
  readonly mzxid: bigint
  /** The version of its data. */
  readonly version: number
  /** The version of its permissions. */
  readonly aclVersion: number
  /** The session whose end deletes the node. 0n: there is none. */
  readonly owner: bigint
  /** The length of its data in bytes. */
  readonly length: number
  /** The transaction that last created or deleted a child. */
  readonly pzxid: bigint
}

/** One request: writes its body and reads the answer. */
export interface Request<Answer> {
  readonly op: number
  /** Is it a transaction? The leader processes transactions. */
  readonly writes: boolean
  write(to: Writer): void
  /** `onError` is called with each error in the answer. */
  read(from: Reader, onError?: (error: number) => void): Answer
}

/** An operation that may be part of a transaction of several. */
export interface Step {
  readonly op: number
  write(to: Writer): void
}

/** The result of one step of a transaction. All steps succeed, or none does. */
export interface Done {
  /** The error of this step. 0: it succeeded. */
  readonly error: number
  readonly stat?: Stat | undefined
}

export function createStep(path: string, data: string, acl: Acl | readonly Acl[], mode: Mode): Step {
  const all = [acl].flat()
  return {
    op: op.create2,
    write(to) {
      to.string(path).string(data).int(all.length)
      for (const { permissions, scheme, id } of all) to.int(permissions).string(scheme).string(id)
      to.int(modes[mode])
    },
  }
}

/** Fails unless the data of the node has this version. @default any */
export function deleteStep(path: string, version = -1): Step {
  return { op: op.delete, write: to => void to.string(path).int(version) }
}

/** Fails unless the node exists. */
export function checkStep(path: string): Step {
  return { op: op.check, write: to => void to.string(path).int(-1) }
}

/** Fails unless the data of the node has this version. @default any */
export function setDataStep(path: string, data: string, version = -1): Step {
  return { op: op.setData, write: to => void to.string(path).string(data).int(version) }
}

export function create(
  path: string,
  data: string,
  acl: Acl | readonly Acl[],
  mode: Mode,
): Request<{ path: string; stat: Stat }> {
  const step = createStep(path, data, acl, mode)
  return { ...step, writes: true, read: from => ({ path: from.string(), stat: readStat(from) }) }
}

/** Creates a container node. The server deletes it some time after its last child was deleted. */
export function createContainer(path: string, acl: Acl): Request<void> {
  const container = 4
  return {
    op: op.createContainer,
    writes: true,
    write: to =>
      void to.string(path).string('').int(1).int(acl.permissions).string(acl.scheme).string(acl.id).int(container),
    read: () => {},
  }
}

export function remove(path: string): Request<void> {
  return { ...deleteStep(path), writes: true, read: () => {} }
}

export function setData(path: string, data: string, version: number): Request<Stat> {
  return { ...setDataStep(path, data, version), writes: true, read: readStat }
}

export function exists(path: string): Request<Stat> {
  return { op: op.exists, writes: false, write: to => void to.string(path).bool(false), read: readStat }
}

export function getData(path: string): Request<{ data: string; stat: Stat }> {
  return {
    op: op.getData,
    writes: false,
    write: to => void to.string(path).bool(false),
    read: from => ({ data: from.string(), stat: readStat(from) }),
  }
}

export function getAcl(path: string): Request<{ acl: Acl[]; stat: Stat }> {
  const readAcl = (from: Reader): Acl => ({ permissions: from.int(), scheme: from.string(), id: from.string() })
  return {
    op: op.getAcl,
    writes: false,
    write: to => void to.string(path),
    read: from => ({ acl: from.list(() => readAcl(from)), stat: readStat(from) }),
  }
}

/**
 * The names of the children, in no order, and the `Stat` of the node. With `watch` the connection emits one event when the
 * children change or the node is deleted. Unlike a watch by `getData`, it ignores changes of the data. Unlike a watch by
 * `exists`, it leaves nothing at the server if the node does not exist.
 */
export function getChildren(path: string, watch = false): Request<{ children: string[]; stat: Stat }> {
  return {
    op: getChildren2,
    writes: false,
    write: to => void to.string(path).bool(watch),
    read: from => ({ children: from.strings(), stat: readStat(from) }),
  }
}

/** The server answers once it has caught up with the leader. */
export function sync(path: string): Request<void> {
  return { op: op.sync, writes: false, write: to => void to.string(path), read: () => {} }
}

/** Ends the session, which deletes its nodes. */
export function closeSession(): Request<void> {
  return { op: op.close, writes: false, write: () => {}, read: () => {} }
}

/** A transaction: all steps succeed, or none does. */
export function multi(steps: readonly Step[]): Request<Done[]> {
  return {
    op: op.multi,
    writes: true,
    write(to) {
      for (const step of steps) {
        to.int(step.op).bool(false).int(-1)
        step.write(to)
      }
      to.int(-1).bool(true).int(-1)
    },
    read(from, onError) {
      const results: Done[] = []
      for (;;) {
        const type = from.int()
        const isEnd = from.bool()
        const error = from.int()
        if (isEnd) break
        const step = steps[results.length]
        const isOfStep = type === step?.op || type === failed || (type === created && step?.op === op.create2)
        if (!isOfStep) throw new Malformed(`a result has type ${type} instead of ${step?.op ?? 'none'}`)
        results.push(readDone(from, type, error))
      }
      // A step without a result would count as successful.
      if (results.length < steps.length) throw new Malformed(`it has ${results.length} of ${steps.length} results`)
      for (const { error } of results) onError?.(error)
      return results
    },
  }
}

/** Reads several nodes, without their content. A missing node fails only its own step. */
export function readAll(paths: readonly string[]): Request<Done[]> {
  const steps = paths.map(path => ({ op: op.getChildren, write: (to: Writer) => void to.string(path).bool(false) }))
  return { ...multi(steps), op: op.multiRead, writes: false }
}

function readDone(from: Reader, type: number, error: number): Done {
  if (type === failed) return { error: from.int() }
  if (type === created || type === op.create2) from.string()
  if (type === op.getChildren) from.strings()
  if (type === op.create2 || type === op.setData) return { error, stat: readStat(from) }
  return { error }
}

function readStat(from: Reader): Stat {
  const czxid = from.long()
  const mzxid = from.long()
  from.long() // ctime
  from.long() // mtime
  const version = from.int()
  from.int() // cversion
  const aclVersion = from.int()
  const owner = from.long()
  const length = from.int()
  from.int() // numChildren
  const pzxid = from.long()
  return { czxid, mzxid, version, aclVersion, owner, length, pzxid }
}

export interface Handshake {
  /** The requested length of the session in milliseconds. */
  readonly timeout: number
  /** The id of the session. 0n: a new session. */
  readonly id: bigint
  readonly password: Uint8Array
  /** The last transaction that this client has seen. A server that lags behind it refuses the session. */
  readonly lastZxid: bigint
}

export function writeHandshake(to: Writer, { timeout, id, password, lastZxid }: Handshake): void {
  to.int(0).long(lastZxid).int(timeout).long(id).buffer(password).bool(false)
}

/** A `timeout` of 0 means that the session is over. */
export function readHandshake(from: Reader): { timeout: number; id: bigint; password: Buffer } {
  from.int() // protocol version
  return { timeout: from.int(), id: from.long(), password: Buffer.from(from.buffer()) }
}

export function writeAuth(to: Writer, user: string, password: string): void {
  to.int(authXid).int(op.auth).int(0).string('digest').string(`${user}:${password}`)
}

/** Transaction ids (xid) of frames that answer no request. */
export const eventXid: number = -1
export const authXid: number = -4
