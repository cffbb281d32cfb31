import type { Idle } from '../idle.ts'
import type { Trace } from '../trace.ts'
import type { Violation } from '../violation.ts'

/**
 * A name that is asked for is had again in time, whoever died or stood still, whatever befell the servers. One that is
 * never had again is a deadlock, whatever began it.
 */
export function liveness(trace: Trace, idles: readonly Idle[]): Violation[] {
  return idles.filter(({ from, to, limit }) => to - from > limit).map(idle => violation(trace, idle))
}

function violation({ acquisitions, grants }: Trace, { name, from, to, fault, limit }: Idle): Violation {
  const ofName = [...acquisitions.values()].filter(each => each.name === name)
  const asker = ofName.findLast(({ asked }) => asked < to)
  // Who died in between two requests may hold what it was never told of.
  const dead = ofName.findLast(({ died }) => died <= from)
  const held = grants.get(name)?.findLast(({ granted }) => granted <= from)
  const last = dead && dead.died >= (held?.believedUntil ?? 0) ? dead : held
  const isHadAgain = grants.get(name)?.some(({ granted }) => granted >= to) === true
  const after = fault ? ` after the fault ${fault.what} (${fault.target})` : last ? ` after client ${last.client}` : ''
  return {
    promise: fault && isHadAgain ? 'faults' : 'deadlock',
    at: to,
    name,
    what: `nobody had it for ${Math.round(to - from)} ms${after}, though it was asked for; ${limit} ms are allowed`,
    ops: [last, asker].flatMap(each => each?.op ?? []),
  }
}

/** Milliseconds after which names were had again whose holder died: longest last. */
export function recoveriesOf({ grants }: Trace): number[] {
  return [...grants.values()]
    .flatMap(granted =>
      granted.flatMap((older, index) => {
        const newer = granted[index + 1]
        const isDeath = newer && older.died < Math.min(older.releasing, newer.granted)
        return isDeath ? [newer.granted - Math.max(older.died, newer.asked)] : []
      }),
    )
    .sort((one, other) => one - other)
}
