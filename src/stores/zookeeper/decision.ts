import type { Claim } from '../../contract/store.ts'
import { gracePeriod, TURN } from '../../contract/time.ts'
import { type Held, Name, type Refusal } from '../rules/name.ts'
import { UNUSED } from '../rules/state.ts'
import { compare, type Node, type Queue } from './nodes.ts'

/** What the rules decide about a claim. */
export interface Decision {
  readonly answer: Held | Refusal
  /** The nodes of the waiters that count as passed afterwards. */
  readonly passed: readonly string[]
  /** The waiters that count before the claim, in order. */
  readonly ahead: readonly Node[]
  /** The nodes that hold the slots which the claim may not have. */
  readonly holders: readonly Node[]
  /** Will one of the holders end soon, because its claim was withdrawn or does not hold? */
  readonly isUnsettled: boolean
}

/**
 * Applies the rules of all stores to the nodes that were read. Nodes have no end time: the server deletes them with their
 * sessions. `mine` is the node of the claim, if it has one.
 *
 * A `c` before the claim counts as a holder, because it holds as soon as it is the first. A `c` behind the claim is never
 * the first while the claim has a node.
 */
export function decide(
  queue: Queue,
  claim: Claim,
  mine: Node | undefined,
  { now, changed }: { readonly now: number; readonly changed: number },
): Decision {
  const { id, ttl, roundTrip, queue: mayWait } = claim
  const { limit = 1, units = 1 } = mine ?? claim
  const isBefore = (node: Node): boolean => node !== mine && (!mine || compare(node, mine) < 0)
  const others = queue.waiters.filter(node => node !== mine)
  const waiters = mine && mayWait ? [...others, mine].sort(compare) : others
  const holders = queue.nodes.filter(node => node.kind === 'h' || (node.kind === 'c' && isBefore(node)))
  const unknown = { owner: '', note: '', ttl: Number.POSITIVE_INFINITY }
  const name = new Name(now, {
    ...UNUSED,
    holders: holders.map(node => ({ ...unknown, ...termsOf(node), token: 0, expires: Number.POSITIVE_INFINITY })),
    waiters: waiters.map(node => {
      const [grace, isPassed] = [graceOf(node), queue.isPassed(node)]
      return { ...unknown, ...termsOf(node), grace, lapses: Number.POSITIVE_INFINITY, isPassed }
    }),
    changed,
  })
  const grace = gracePeriod(roundTrip)
  const answer = name.acquire({ ...unknown, id, ttl, limit, units, grace, queue: mayWait })
  const passed = new Set(name.state.waiters.filter(({ isPassed }) => isPassed).map(waiter => waiter.id))
  return {
    answer,
    passed: waiters.filter(node => passed.has(node.id)).map(node => node.name),
    ahead: waiters.filter(node => isBefore(node) && !queue.isPassed(node)),
    holders,
    // A `c` that turns out not to hold wakes the waiter. A claim that tries now would be refused for nothing.
    isUnsettled: holders.some(node => {
      return queue.isWithdrawn(node.id) || (!mayWait && node.kind === 'c' && node !== queue.nodes[0])
    }),
  }
}

function termsOf({ id, limit, units, slots }: Node): Pick<Node, 'id' | 'limit' | 'units' | 'slots'> {
  return { id, limit, units, slots }
}

/** The grace period: milliseconds in which a waiter must ask once it is the first and fits. */
function graceOf({ roundTrip }: Node): number {
  return TURN + roundTrip
}
