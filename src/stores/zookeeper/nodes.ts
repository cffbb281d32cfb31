import { randomId } from '../../contract/random-id.ts'
import { roundTripOf } from '../../contract/time.ts'

/** A node of a claim. Its name contains everything that decides. */
export interface Node {
  readonly name: string
  /** `h`: holds the name if it is the first. `w`: waits. `x`: the claim was withdrawn. */
  readonly kind: 'h' | 'w' | 'x'
  readonly id: string
  /** The token, if the node replaced one that held. */
  readonly token: bigint | undefined
  /** What the round trip of the waiter adds to its grace period, in ms. */
  readonly roundTrip: number
  /** Its position, as the server numbered it. */
  readonly place: number
}

const pattern = /^([hwx])([0-9a-f]+)(?:-[0-9a-f]{8}(?:-t([0-9a-f]+))?)?(?:-r(\d+))?(?:-(-?\d{9,}))?$/

/** The name without the position, which the server appends. */
export function newNode(kind: 'h' | 'w', id: string, roundTrip: number): string {
  return `${kind}${id}-r${roundTrip}-`
}

/**
 * The name of a node that replaces another in its position. It is unique, so it is never mistaken for the old node. That of a
 * waiter that begins to hold can be watched in advance.
 */
export function nodeInPlace(kind: 'h' | 'w', from: Node, token: bigint | undefined): string {
  if (kind === 'h' && from.kind === 'w' && token === undefined) return holderAfter(from)
  const carried = token === undefined ? '' : `-t${token.toString(16)}`
  return `${kind}${from.id}-${randomId().slice(0, 8)}${carried}-r${from.roundTrip}-${digits(from.place)}`
}

/** The name of the node by which a waiter holds. */
export function holderAfter(waiter: Node): string {
  return `h${waiter.name.slice(1)}`
}

/** In 10 characters, as the server writes it. */
function digits(place: number): string {
  return place < 0 ? `-${String(-place).padStart(9, '0')}` : String(place).padStart(10, '0')
}

/** The node of a withdrawn claim. */
export function tombstone(id: string): string {
  return `x${id}`
}

export function parseNode(name: string): Node | undefined {
  const [, kind, id = '', token, roundTrip, place] = pattern.exec(name) ?? []
  if (kind === undefined || (kind === 'x') !== (place === undefined)) return undefined
  return {
    name,
    kind: kind as Node['kind'],
    id,
    token: token === undefined ? undefined : BigInt(`0x${token}`),
    roundTrip: roundTripOf(Number(roundTrip ?? 0)),
    place: Number(place ?? 0),
  }
}

/** The claims of one name, in order. */
export class Queue {
  readonly nodes: readonly Node[]
  /** The last transaction that broke a lease or granted one to a waiter. An older node alone does not hold the name. */
  readonly mark: bigint
  /** Changes when the node of the name is replaced or its permissions are set. Unique. */
  readonly version: string
  readonly #withdrawn: ReadonlySet<string>
  #byId: Map<string, Node[]> | undefined

  constructor(children: readonly string[], mark: bigint, version = '') {
    const all = children.map(parseNode).filter(node => node !== undefined)
    this.mark = mark
    this.version = version
    this.nodes = all.filter(({ kind }) => kind !== 'x').sort((a, b) => before(a.place, b.place))
    this.#withdrawn = new Set(all.filter(({ kind }) => kind === 'x').map(({ id }) => id))
  }

  /** The node that holds. If the first one waits, nobody holds. */
  get holder(): Node | undefined {
    return this.nodes[0]?.kind === 'h' ? this.nodes[0] : undefined
  }

  isWithdrawn(id: string): boolean {
    return this.#withdrawn.has(id)
  }

  /** The nodes of one claim: one, unless it was created twice at the same time. */
  of(id: string): Node[] {
    this.#byId ??= Map.groupBy(this.nodes, node => node.id)
    return this.#byId.get(id) ?? []
  }

  /** The nodes ahead. */
  ahead(of: Node): readonly Node[] {
    return this.nodes.slice(
      0,
      this.nodes.findIndex(({ name }) => name === of.name),
    )
  }
}

/** The server counts in signed 32 bits: after 2,147,483,647 comes -2,147,483,648. */
function before(a: number, b: number): number {
  return (a - b) | 0
}
