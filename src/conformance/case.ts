import type { Need } from './harness.ts'
import type { Space } from './space.ts'

/** One thing that must be true of every store that has what it needs. */
export interface Case {
  /** A sentence about behaviour. */
  readonly name: string
  readonly needs?: readonly Need[] | undefined
  /** Must nothing else run in this process or on this server meanwhile? */
  readonly alone?: boolean | undefined
  run(space: Space): Promise<void>
}

/** What cases have in common. */
export type Traits = Omit<Case, 'name' | 'run'>

/** A list of cases from their names and bodies, and what some of them need besides. */
export function casesOf<Bodies extends Record<string, Case['run']>>(
  traits: Traits,
  bodies: Bodies,
  more: { readonly [Name in keyof Bodies]?: readonly Need[] } = {},
): Case[] {
  return Object.entries(bodies).map(([name, run]) => {
    const needs = [...(traits.needs ?? []), ...(more[name] ?? [])]
    return { ...traits, needs, name, run }
  })
}
