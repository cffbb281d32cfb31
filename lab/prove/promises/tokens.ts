import type { Acquisition } from '../acquisition.ts'
import type { Trace } from '../trace.ts'
import type { Violation } from '../violation.ts'

/** Tokens are unique, stay the same for as long as a lease lives, and rise from who was granted to who asked after. */
export function tokens({ grants }: Trace): Violation[] {
  return [...grants].flatMap(([name, granted]) => [
    ...repeated(granted),
    ...fallen(granted),
    ...granted.flatMap(({ op, token, writes }) =>
      writes
        .filter(write => write.token !== token)
        .map(({ at, token: other }) => violation(at, name, `token ${token} became ${other} while it was held`, [op])),
    ),
  ])
}

function repeated(granted: readonly Acquisition[]): Violation[] {
  const first = new Map<bigint, Acquisition>()
  return granted.flatMap(acquisition => {
    const { token, granted: at, name, op } = acquisition
    const earlier = first.get(token)
    if (earlier) return [violation(at, name, `token ${token} was handed out twice`, [earlier.op, op])]
    first.set(token, acquisition)
    return []
  })
}

/** By the real order: what was handed out before the other was asked for. */
function fallen(granted: readonly Acquisition[]): Violation[] {
  const violations: Violation[] = []
  let highest: Acquisition | undefined
  let next = 0
  for (const acquisition of granted.toSorted((one, other) => one.asked - other.asked)) {
    for (let before = granted[next]; before && before.granted < acquisition.asked; before = granted[next]) {
      if (!highest || before.token > highest.token) highest = before
      next += 1
    }
    const { token, granted: at, name, op } = acquisition
    if (highest && token < highest.token)
      violations.push(
        violation(at, name, `token ${token} was handed out to who asked after ${highest.token} was`, [highest.op, op]),
      )
  }
  return violations
}

function violation(at: number, name: string, what: string, ops: readonly number[]): Violation {
  return { promise: 'tokens', at, name, what, ops }
}
