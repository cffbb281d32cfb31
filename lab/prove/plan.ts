import { between, type Random, seeded, shuffled } from './random.ts'

/** One fault to come. */
export interface Planned {
  /** Milliseconds after the start of the faults. */
  readonly at: number
  readonly fault: string
  /** Milliseconds that it lasts, where it lasts. */
  readonly length: number
  /** Decides whom it strikes, and how. */
  readonly seed: number
}

export interface PlanOptions {
  readonly seed: number
  /** Names of faults; none is a quiet run. */
  readonly faults: readonly string[]
  /** Milliseconds. */
  readonly duration: number
  readonly ttl: number
  /** Milliseconds for which a holder that is silent keeps a name. @default the ttl */
  readonly lasts?: number | undefined
}

/**
 * What goes wrong, and when: the same for the same options. Each fault comes once before any comes again, but clients are
 * stopped and killed more often, since that is what a lease is for. The end is quiet, so that all is mended by then.
 */
export function planOf({ seed, faults, duration, ttl, lasts = ttl }: PlanOptions): Planned[] {
  const random = seeded(seed)
  const planned: Planned[] = []
  let deck: string[] = []
  if (faults.length === 0) return planned
  for (let at = 0.5 * ttl; at < duration - 2 * ttl; at += between(random, 0.2, 1) * ttl) {
    if (deck.length === 0) deck = deal(random, faults)
    const fault = deck.pop() as string
    planned.push({
      at,
      fault,
      length: lengthOf(fault, random) * lasts,
      seed: Math.floor(random() * 2 ** 32),
    })
  }
  return planned
}

function deal(random: Random, faults: readonly string[]): string[] {
  const often = faults.filter(fault => fault === 'client-pause' || fault === 'client-kill')
  return shuffled(random, [...faults, ...often, ...often.slice(0, 1)])
}

/** In lives of a lease. To stop a client for less is nothing to it. */
function lengthOf(fault: string, random: Random): number {
  const stops = fault === 'client-pause' || fault === 'client-block'
  return stops ? between(random, 0.8, 3) : between(random, 0.3, 1.8)
}
