import { Random } from '../../simulation/random.ts'
import type { Model, World } from './model.ts'

export interface Found {
  readonly states: number
  readonly isComplete: boolean
  /** A shortest path to a violation, a line for each step. */
  readonly violation?: readonly string[]
}

/** Tokens are counted from the last one, so that worlds that differ in nothing else are one. */
function keyOf({ name, clients, line }: World): string {
  const rank = (token: number): number => token - name.token
  const holders = name.holders.map(({ id, expires, slots, token, ttl }) => [id, expires, slots, rank(token), ttl])
  const waiters = name.waiters.map(({ id, lapses, isPassed }) => [id, lapses, isPassed])
  const each = clients.map(({ phase, due, until, token, copy, slots }) => {
    return [phase, due, until, phase === 'holds' ? rank(token) : 0, copy, slots]
  })
  return JSON.stringify([holders, waiters, [...name.gone], name.changed, each, line])
}

interface Node {
  readonly world: World
  readonly before: number
  readonly what: string
}

/** Searches breadth-first, up to `most` states. */
export function search(model: Model, most: number): Found {
  const seen = new Set<string>()
  const nodes: Node[] = []
  const add = (world: World, before: number, what: string): void => {
    const key = keyOf(world)
    if (seen.has(key) && !world.violation) return
    seen.add(key)
    nodes.push({ world, before, what })
  }
  const path = (at: number): string[] => {
    const { before, what } = nodes[at] as Node
    return before < 0 ? [] : [...path(before), what]
  }
  add(model.start, -1, '')
  for (let at = 0; at < nodes.length; at += 1) {
    const { world } = nodes[at] as Node
    const violation = model.violationOf(world)
    if (violation) return { states: nodes.length, isComplete: false, violation: [...path(at), violation] }
    if (nodes.length >= most) return { states: nodes.length, isComplete: false }
    for (const [what, to] of model.steps(world)) add(to, at, what)
  }
  return { states: nodes.length, isComplete: true }
}

/** A random walk: a path to a violation, a line for each step, or `undefined`. The same seed gives the same walk. */
export function walk(model: Model, seed: number, length: number): readonly string[] | undefined {
  const random = new Random(seed)
  let world = model.start
  const path: string[] = []
  for (let step = 0; step < length; step += 1) {
    const violation = model.violationOf(world)
    if (violation) return [...path, violation]
    const steps = [...model.steps(world)]
    if (steps.length === 0) return undefined
    const [what, to] = random.pick(steps)
    path.push(what)
    world = to
  }
  return undefined
}
