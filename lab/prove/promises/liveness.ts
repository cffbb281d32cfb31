import type { Idle } from '../idle.ts'
import type { Trace } from '../trace.ts'
import { ms, seconds } from '../verdict.ts'
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
  const last = grants.get(name)?.findLast(({ granted }) => granted <= from)
  const since = last?.believedUntil ?? 0
  // Who died in between two requests may hold what it was never told of.
  const dead = ofName.filter(({ died }) => died >= since && died <= to).sort((one, other) => one.died - other.died)[0]
  const isHadAgain = grants.get(name)?.some(({ granted }) => granted >= to) === true
  const after = fault
    ? ` after the fault ${fault.what} (${fault.target})`
    : dead
      ? ` after client ${dead.client} died`
      : ''
  const before = since < from ? `; its last holder had it until ${seconds(since)}` : ''
  return {
    promise: fault && isHadAgain ? 'faults' : 'deadlock',
    at: to,
    name,
    what: `nobody had it for ${ms(to - from)}${after}, though it was asked for, and ${ms(limit)} are allowed${before}`,
    ops: [...new Set([last, dead, asker].flatMap(each => each?.op ?? []))],
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
