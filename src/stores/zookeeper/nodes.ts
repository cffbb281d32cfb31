import { randomId } from '../../contract/random-id.ts'
import type { Claim } from '../../contract/store.ts'
import { roundTripOf } from '../../contract/time.ts'

/** A node of a claim. Its name contains everything that the rules need. */
export interface Node {
  readonly name: string
  /**
   * `h`: holds. `c`: holds the name alone if it is the first node of all. `w`: waits. `t`: tries, without a position in the
   * queue. `x`: the claim was withdrawn.
   */
  readonly kind: 'h' | 'c' | 'w' | 't' | 'x'
  readonly id: string
  readonly limit: number
  /** The number of slots that the claim wants. */
  readonly units: number
  /** The slots of a node that holds. */
  readonly slots: readonly number[]
  /** The token, if the node replaced one that already held. */
  readonly token: bigint | undefined
  /** The milliseconds that the round trip of the waiter adds to its grace period. */
  readonly roundTrip: number
  /** Its position, as the server numbered it. */
  readonly sequence: number
}

const pattern =
  /^([hcwtx])([0-9a-f]+)(?:-[0-9a-f]{8}(?:-t([0-9a-f]+))?)?(?:-l(\d+))?(?:-u(\d+)|-s(\d+(?:\.\d+)*))?(?:-r(\d+))?(?:-(-?\d{9,}))?$/

/** The name without the position, which the server appends. */
export function newNode(kind: 'c' | 'w' | 't', { id, limit = 1, units = 1 }: Claim, roundTrip: number): string {
  return `${kind}${id}${termsOf(limit, units > 1 ? `-u${units}` : '')}-r${roundTrip}-`
}

/** What a node that replaces another contains. */
export type Successor =
  | { readonly kind: 'w' }
  | { readonly kind: 'h'; readonly token: bigint | undefined; readonly slots: readonly number[] }

/**
 * The name of a node that replaces another one in its position. It is unique, so it is never mistaken for the old node. The
 * new name of a waiter that begins to hold the name alone is known in advance, so others can watch it.
 */
export function replacing(from: Node, by: Successor): string {
  const token = by.kind === 'h' ? by.token : undefined
  if (by.kind === 'h' && from.kind === 'w' && from.limit === 1 && token === undefined) return holderAfter(from)
  const carried = token === undefined ? '' : `-t${token.toString(16)}`
  const units = from.units > 1 ? `-u${from.units}` : ''
  const terms = termsOf(from.limit, by.kind === 'h' ? `-s${by.slots.join('.')}` : units)
  return `${by.kind}${from.id}-${randomId().slice(0, 8)}${carried}${terms}-r${from.roundTrip}-${digits(from.sequence)}`
}

/** The name of the node by which a waiter holds the name alone. */
export function holderAfter(waiter: Node): string {
  return `h${waiter.name.slice(1)}`
}

/** A claim of limit 1 wants only slot 0. */
function termsOf(limit: number, wanted: string): string {
  return limit === 1 ? '' : `-l${limit}${wanted}`
}

/** The position in 10 characters, as the server writes it. */
function digits(sequence: number): string {
  return sequence < 0 ? `-${String(-sequence).padStart(9, '0')}` : String(sequence).padStart(10, '0')
}

/** The name of a new tombstone for a withdrawn claim. Each withdrawal has its own, which no other withdrawal deletes. */
export function tombstone(id: string): string {
  return `x${id}-${randomId().slice(0, 8)}`
}

export function parseNode(name: string): Node | undefined {
  const [, kind, id = '', token, limit, units, slots, roundTrip, sequence] = pattern.exec(name) ?? []
  if (kind === undefined || (kind === 'x') !== (sequence === undefined)) return undefined
  const has = slots?.split('.').map(Number) ?? [0]
  return {
    name,
    kind: kind as Node['kind'],
    id,
    limit: Number(limit ?? 1),
    units: Number(units ?? has.length),
    slots: kind === 'h' || kind === 'c' ? has : [],
    token: token === undefined ? undefined : BigInt(`0x${token}`),
    roundTrip: roundTripOf(Number(roundTrip ?? 0)),
    sequence: Number(sequence ?? 0),
  }
}

/** The content of the node of a name, apart from its children. */
export interface Parent {
  /**
   * The last transaction that wrote the data of the node. A `c` that was created before it does not hold just because it is
   * the first.
   */
  readonly mark: bigint
  /** The version of the data, which counts its writes. */
  readonly version: number
  /** The names of the nodes of waiters that let their grace periods pass. */
  readonly passed: readonly string[]
  /** A unique value that changes when the node is replaced or its permissions are set. */
  readonly identity: string
  /** The last transaction that created or deleted a child. */
  readonly changed: bigint
}

const UNUSED: Parent = { mark: 0n, version: 0, passed: [], identity: '', changed: 0n }

/** The claims of one name, in order. */
export class Queue {
  readonly parent: Parent
  readonly nodes: readonly Node[]
  readonly #withdrawn: ReadonlySet<string>
  #byId: Map<string, Node[]> | undefined

  /** @default a name that was never used */
  constructor(children: readonly string[], parent: Parent = UNUSED) {
    const all = children.map(parseNode).filter(node => node !== undefined)
    this.parent = parent
    this.nodes = all.filter(({ kind }) => kind !== 'x').sort(compare)
    this.#withdrawn = new Set(all.filter(({ kind }) => kind === 'x').map(({ id }) => id))
  }

  /** The nodes that hold, sorted by their lowest slot. */
  get holders(): readonly Node[] {
    const [first, ...others] = this.nodes
    const holders = others.filter(({ kind }) => kind === 'h')
    if (first?.kind === 'h' || first?.kind === 'c') holders.push(first)
    return holders.sort((a, b) => (a.slots[0] as number) - (b.slots[0] as number))
  }

  /** The nodes that wait, in order. */
  get waiters(): readonly Node[] {
    return this.nodes.filter(node => node.kind === 'w' && this.isCurrent(node))
  }

  /** Does this node count? If its claim was withdrawn or has another node, this one is about to be deleted. */
  isCurrent(node: Node): boolean {
    return !this.isWithdrawn(node.id) && this.of(node.id)[0] === node
  }

  isPassed({ name }: Node): boolean {
    return this.parent.passed.includes(name)
  }

  isWithdrawn(id: string): boolean {
    return this.#withdrawn.has(id)
  }

  /** The nodes of one claim: one, unless it was created twice at the same time. */
  of(id: string): readonly Node[] {
    this.#byId ??= Map.groupBy(this.nodes, node => node.id)
    return this.#byId.get(id) ?? []
  }
}

/**
 * Returns a negative number if `a` is before `b`. The server counts in signed 32 bits: after 2,147,483,647 comes
 * -2,147,483,648.
 */
export function compare(a: Node, b: Node): number {
  return (a.sequence - b.sequence) | 0
}
