import type { Plan } from './plan.ts'
import { States } from './states.ts'
import { stepsOf, take } from './steps.ts'
import { story } from './story.ts'
import { World } from './world.ts'

/** A search that has not seen all states ends at the first of these limits. */
export interface Limits {
  /** The highest number of states. */
  states: number
  seconds: number
}

export interface Found {
  states: number
  /** All states with fewer steps than this from the start were seen. */
  depth: number
  /** Were all reachable states seen? */
  isComplete: boolean
  /** A shortest path to a violation, a line for each step. If numbers are `ordered`, only the violation. */
  violation?: string[]
}

/** Searches breadth-first, so the path to a violation is a shortest one. */
export function search(plan: Plan, limits: Limits): Found {
  const world = new World(plan)
  const steps = stepsOf(plan)
  const states = new States(world.size, limits.states)
  const until = performance.now() + limits.seconds * 1000
  for (const step of plan.given ?? []) take(world, step)
  world.write(states.draft, 0)
  states.add(-1)
  let depth = 0
  let levelEnd = states.count
  for (let state = 0; state < states.count; state += 1) {
    if (state === levelEnd) {
      depth += 1
      levelEnd = states.count
    }
    if (states.isFull || (state % 1024 === 0 && performance.now() > until))
      return { states: states.count, depth, isComplete: false }
    const { bytes, start } = states.at(state)
    world.read(bytes, start)
    if (!world.isTimed && world.isOver()) continue
    for (const step of steps) {
      if (('member' in step && world.members[step.member]?.isRepeated) || !take(world, step)) continue
      if (world.violation !== '') {
        const violation = plan.numbers === 'ordered' ? [world.violation] : story(plan, states.path(state))
        return { states: states.count, depth: depth + 1, isComplete: false, violation }
      }
      world.write(states.draft, 0)
      states.add(state)
      world.read(bytes, start)
    }
  }
  return { states: states.count, depth, isComplete: true }
}
