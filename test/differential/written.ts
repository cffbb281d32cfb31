import { positionLifetime } from '../../src/stores/rules/name.ts'
import type { NameState } from '../../src/stores/rules/state.ts'
import type { Slack } from './possible.ts'

/** A store need not write the position of a waiter again that it wrote within the last quarter of its lifetime. */
export const LEAST_KEPT = 0.75

/** The name with positions that were not written again. */
export function unwritten(
  state: NameState,
  given: NameState,
  now: number,
  { precision, keepsFor = LEAST_KEPT }: Slack,
): NameState {
  if (precision === 0) return state
  const before = new Map(given.waiters.map(({ id, lapses }) => [id, lapses]))
  const waiters = state.waiters.map(each => {
    const least = now + keepsFor * positionLifetime(each.ttl)
    const first = keepsFor < LEAST_KEPT ? least : each.lapses
    return { ...each, lapses: Math.min(each.lapses, Math.max(before.get(each.id) ?? first, least)) }
  })
  return { ...state, waiters }
}

/** The name with positions that last longer than they do by the clock of the rules, which takes that for a clock set back. */
export function kept(state: NameState, given: NameState, { precision }: Slack): NameState {
  if (precision === 0) return state
  const before = new Map(given.waiters.map(({ id, lapses }) => [id, lapses]))
  const waiters = state.waiters.map(each => {
    return { ...each, lapses: Math.max(each.lapses, before.get(each.id) ?? each.lapses) }
  })
  return { ...state, waiters }
}

/** The name as it was, but for this holder, and for the claims that were withdrawn. */
export function narrowed(state: NameState, given: NameState, id: string): NameState {
  const after = state.holders.find(holder => holder.id === id)
  return { ...given, holders: given.holders.map(each => (each.id === id ? (after ?? each) : each)), gone: state.gone }
}
