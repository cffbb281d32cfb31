import { Random } from '../simulation/random.ts'
import { GRANTED } from './claim.ts'
import type { Plan } from './plan.ts'
import { type Step, stepsOf, take } from './steps.ts'
import { retell } from './story.ts'
import { World } from './world.ts'

export interface Walked {
  /** How many attempts were granted. */
  grants: number
  /** The way to something wrong, a line for each step. */
  violation?: string[]
}

/** Grants are rare if everything is as likely, for stray votes are in each other's way. */
const WEIGHTS: Partial<Record<Step['kind'], number>> = { decide: 20, commit: 5, vote: 3 }

/** By chance from state to state, where there are too many to see all. The same seed goes the same way. */
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
