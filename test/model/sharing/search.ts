import { DEAD, DONE, type Plan, type State, startOf, violationOf } from './model.ts'
import { stepsOf } from './steps.ts'

export interface Found {
  readonly states: number
  /** A shortest path to a violation, a line for each step. */
  readonly violation: readonly string[] | undefined
}

/** A state, how it was reached, and which states lead to it without a fault. */
interface Node {
  readonly state: State
  readonly from: Node | undefined
  readonly what: string
  readonly sources: Node[]
  mayEnd: boolean
}

/**
 * Searches all states, breadth-first. A violation is a wrong state, or one from which the live clients cannot all come
 * to an end any more, even if no further fault happens.
 */
export function search(plan: Plan): Found {
  const nodes = new Map<string, Node>()
  const order: Node[] = []
  const visit = (state: State, from: Node | undefined, what: string): Node => {
    const key = JSON.stringify(state)
    const known = nodes.get(key)
    if (known) return known
    const node = { state, from, what, sources: [], mayEnd: false }
    nodes.set(key, node)
    order.push(node)
    return node
  }
  visit(startOf(plan), undefined, '')
  for (const node of order) {
    const violation = violationOf(plan, node.state)
    if (violation) return { states: order.length, violation: [...story(node), violation] }
    for (const { what, isFault, to } of stepsOf(plan, node.state)) {
      const next = visit(to, node, what)
      if (!isFault) next.sources.push(node)
    }
  }
  const ending = order.filter(({ state }) => state.phase.every(phase => phase === DONE || phase === DEAD))
  for (const node of ending) node.mayEnd = true
  for (const node of ending)
    for (const source of node.sources) {
      if (source.mayEnd) continue
      source.mayEnd = true
      ending.push(source)
    }
  const stuck = order.find(({ mayEnd }) => !mayEnd)
  return { states: order.length, violation: stuck && [...story(stuck), 'somebody waits for ever'] }
}

function story(node: Node): string[] {
  const lines: string[] = []
  for (let at: Node | undefined = node; at?.from; at = at.from) lines.unshift(at.what)
  return lines
}
