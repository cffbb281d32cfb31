import { isFull } from '../tier.ts'
import type { Plan } from './plan.ts'
import { OURS, type Rules } from './rules.ts'
import type { Limits } from './search.ts'

/** Tokens of two claims over three nodes, whatever numbers there are and wherever leases end. */
export const TOKENS: Plan = {
  rules: OURS,
  members: 3,
  attempts: [1, 1],
  numbers: 'ordered',
  renewals: 1,
  forgetful: 0,
  leasesEnd: 'anyMoment',
}

/** Exclusion with good clocks, where one claim may give up and vote again. */
export const EXCLUSION: Plan = { ...TOKENS, attempts: [2, 1], numbers: 2, leasesEnd: 'unneeded' }

/** Five nodes and three claims: too many states to see, for walks. */
export const LARGE: Plan = { ...TOKENS, members: 5, attempts: [1, 1, 1], numbers: 120 }

export function without(...rules: (keyof Rules)[]): Rules {
  return { ...OURS, ...Object.fromEntries(rules.map(rule => [rule, false])) }
}

const { MODEL_SECONDS, MODEL_STATES } = process.env
const SECONDS = Number(MODEL_SECONDS ?? 20)

/** Of a search that does not see everything; the larger run's are set from outside. */
export const LIMITS: Limits = {
  states: Number(MODEL_STATES ?? (MODEL_SECONDS ? 150e6 : isFull ? 1e6 : 40e3)),
  seconds: MODEL_SECONDS ? SECONDS : Number.POSITIVE_INFINITY,
}

/** Only what hangs ends by it. */
export const TEST_TIMEOUT: number = 120_000 + SECONDS * 2_000

/** For what is found, or seen to the end, in less. */
export const LIMITLESS: Limits = { states: 5e6, seconds: Number.POSITIVE_INFINITY }
