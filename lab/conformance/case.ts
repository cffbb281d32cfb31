import type { Need } from './harness.ts'
import type { Space } from './space.ts'

/** A statement that must be true of every store with what the case needs. */
export interface Case {
  /** A sentence about behaviour. */
  readonly name: string
  readonly needs?: readonly Need[] | undefined
  /** Nothing else may run in this process or on this server meanwhile. */
  readonly alone?: boolean | undefined
  run(space: Space): Promise<void>
}

/** What several cases share. */
export type Traits = Omit<Case, 'name' | 'run'>

/** Builds cases from their names and bodies, and what some of them need in addition. */
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
