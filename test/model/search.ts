import type { Plan } from './plan.ts'
import { States } from './states.ts'
import { stepsOf, take } from './steps.ts'
import { story } from './story.ts'
import { World } from './world.ts'

/** A search ends at the first of them, if it has not seen everything. */
export interface Limits {
  /** How many states to keep at most. */
  states: number
  seconds: number
}

export interface Found {
  states: number
  /** Every state at fewer steps than this from the start was seen. */
  depth: number
  /** Was every state that can be reached seen? */
  isComplete: boolean
  /** A shortest way to something wrong, a line for each step; only what is wrong if numbers are `ordered`. */
  violation?: string[]
}

/** Breadth first, so that a violation comes with a shortest way there. */
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
