import { type Clock, systemClock } from './time.ts'

/** Sources of time and randomness. A simulation passes its own. */
export interface Environment {
  readonly clock: Clock
  /** Returns a number from 0 up to 1, like `Math.random`. */
  readonly random: () => number
}

/** The environment of this process. */
export function systemEnvironment(): Environment {
  return { clock: systemClock(), random: Math.random }
}
