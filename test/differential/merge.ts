import type { NameState } from '../../src/stores/rules/state.ts'
import { shapeOf } from './op.ts'
import type { Expected, Possible } from './possible.ts'

/** One state for each shape, with the earliest and the latest of all times. */
export function merged(states: readonly Possible[]): Possible[] {
  const byShape = new Map<string, Possible>()
  for (const state of states) {
    const { early, tokens, expected, pending } = state
    const known = [...tokens].map(([token, real]) => [token, String(real)])
    const key = JSON.stringify([shapeOf(early), known, [...expected.keys()], pending.map(({ sent }) => sent)])
    const other = byShape.get(key)
    byShape.set(key, other ? both(other, state) : state)
  }
  return [...byShape.values()]
}

function both(a: Possible, b: Possible): Possible {
  const expected = [...a.expected].map(([id, { since, by }]): [string, Expected] => {
    const other = b.expected.get(id) as Expected
    return [id, { since: Math.min(since, other.since), by: Math.max(by, other.by) }]
  })
  return {
    ...a,
    at: Math.min(a.at, b.at),
    early: joined(a.early, b.early, Math.min),
    late: joined(a.late, b.late, Math.max),
    expected: new Map(expected),
  }
}

function joined(a: NameState, b: NameState, pick: (...times: number[]) => number): NameState {
  return {
    ...a,
    holders: a.holders.map((each, index) => {
      return { ...each, expires: pick(each.expires, b.holders[index]?.expires ?? each.expires) }
    }),
    waiters: a.waiters.map((each, index) => {
      return { ...each, lapses: pick(each.lapses, b.waiters[index]?.lapses ?? each.lapses) }
    }),
    gone: new Map([...a.gone].map(([id, until]) => [id, pick(until, b.gone.get(id) ?? until)])),
    changed: pick(a.changed, b.changed),
  }
}
