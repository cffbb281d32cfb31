import { FAULTS } from '../faults/fault.ts'
import { between, type Random, seeded, shuffled } from '../faults/random.ts'

/** A planned fault. */
export interface Planned {
  /** Milliseconds after the start of the faults. */
  readonly at: number
  readonly fault: string
  /** How long a lasting fault lasts, in milliseconds. */
  readonly length: number
  /** Decides its target and details. */
  readonly seed: number
}

export interface PlanOptions {
  readonly seed: number
  /** Names of faults. */
  readonly faults: readonly string[]
  /** Milliseconds. */
  readonly duration: number
  readonly ttl: number
  /** How long an unresponsive holder keeps a name, in milliseconds. Faults of servers need not last so long. @default the ttl */
  readonly lasts?: number | undefined
  /** How long a name may be free after the last fault, in milliseconds. @default 0 */
  readonly calm?: number | undefined
}

/**
 * Plans the faults of a run: the same plan for the same options. Each fault comes once before any comes again, but clients
 * are paused and killed more often. The end has no faults, so that all are repaired by then.
 */
export function planOf({ seed, faults, duration, ttl, lasts = ttl, calm = 0 }: PlanOptions): Planned[] {
  const random = seeded(seed)
  const planned: Planned[] = []
  let deck: string[] = []
  if (faults.length === 0) return planned
  for (let at = 0.5 * ttl; at < duration - 2 * ttl; at += between(random, 0.2, 1) * ttl) {
    if (deck.length === 0) deck = deal(random, faults)
    const fault = deck.pop() as string
    const group = FAULTS[fault]?.group
    const ttls = lengthOf(fault, random)
    // Faults that began before may last for three, and each may be why a name is free.
    const length = group === 'address' ? 3 * lasts + 1.5 * calm : ttls * (group === 'server' ? ttl : lasts)
    planned.push({ at, fault, length, seed: Math.floor(random() * 2 ** 32) })
    if (group === 'address') at += length
  }
  return planned
}

function deal(random: Random, faults: readonly string[]): string[] {
  const often = faults.filter(fault => fault === 'client-pause' || fault === 'client-kill')
  return shuffled(random, [...faults, ...often, ...often.slice(0, 1)])
}

/** In ttls. A shorter pause of a client has no effect. */
function lengthOf(fault: string, random: Random): number {
  const stops = fault === 'client-pause' || fault === 'client-block'
  return stops ? between(random, 0.8, 3) : between(random, 0.3, 1.8)
}
