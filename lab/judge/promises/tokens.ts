import { type Holding, isSplit, type Trace } from '../trace.ts'
import type { Violation } from '../violation.ts'

/**
 * Tokens of a name, or of a slot of a shared name, are unique, and increase from each grant to those whose request left
 * after it.
 */
export function tokens(trace: Trace): Violation[] {
  return [...trace.holdings].flatMap(([key, holders]) => [...repeated(key, holders), ...fallen(key, holders, trace)])
}

function repeated(key: string, holders: readonly Holding[]): Violation[] {
  const first = new Map<bigint, number>()
  return holders.flatMap(({ token, acquisition: { granted: at, op } }) => {
    const earlier = first.get(token)
    if (earlier !== undefined) return [violation(at, key, `token ${token} was granted twice`, [earlier, op])]
    first.set(token, op)
    return []
  })
}

/** Compares grants with the requests that left after them. */
function fallen(key: string, holders: readonly Holding[], trace: Trace): Violation[] {
  const violations: Violation[] = []
  let highest: Holding | undefined
  const received = holders.toSorted((one, other) => one.acquisition.granted - other.acquisition.granted)
  let next = 0
  for (const { token, acquisition } of holders.toSorted(byRequest)) {
    const { sent, granted: at, op } = acquisition
    for (let before = received[next]; before && before.acquisition.granted < sent; before = received[next]) {
      if (!highest || before.token > highest.token) highest = before
      next += 1
    }
    if (!highest || token >= highest.token || isSplit(trace, highest.acquisition.granted, at)) continue
    const what = `token ${token} was granted to a request that came after the grant of ${highest.token}`
    violations.push(violation(at, key, what, [highest.acquisition.op, op]))
  }
  return violations
}

function byRequest({ acquisition: one }: Holding, { acquisition: other }: Holding): number {
  return one.sent - other.sent
}

function violation(at: number, name: string, what: string, ops: readonly number[]): Violation {
  return { promise: 'tokens', at, name, what, ops }
}
