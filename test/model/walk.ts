import { Random } from '../simulation/random.ts'
import { GRANTED } from './claim.ts'
import type { Plan } from './plan.ts'
import { type Step, stepsOf, take } from './steps.ts'
import { retell } from './story.ts'
import { World } from './world.ts'

export interface Walked {
  /** The number of granted attempts. */
  grants: number
  /** The path to a violation, a line for each step. */
  violation?: string[]
}

/** Steps have weights, because grants are rare if all steps are equally likely. */
const WEIGHTS: Partial<Record<Step['kind'], number>> = { decide: 20, commit: 5, vote: 3 }

/** A random walk, for models with too many states. The same seed gives the same walk. */
export function walk(plan: Plan, seed: number, length: number): Walked {
  const random = new Random(seed)
  const world = new World(plan)
  const steps = stepsOf(plan).flatMap(step => Array.from({ length: weightOf(step) }, () => step))
  const taken: Step[] = []
  while (taken.length < length && !world.isOver() && world.violation === '') {
    const step = random.pick(steps)
    if (take(world, step)) taken.push(step)
  }
  const grants = world.attempts.filter(({ phase }) => phase === GRANTED).length
  return world.violation === '' ? { grants } : { grants, violation: [...retell(plan, taken), world.violation] }
}

function weightOf(step: Step): number {
  return 'isHeard' in step && !step.isHeard ? 1 : (WEIGHTS[step.kind] ?? 1)
}
