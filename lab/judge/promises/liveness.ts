import { ms, seconds } from '../format.ts'
import type { Idle } from '../idle.ts'
import { nextGrants, type Trace } from '../trace.ts'
import type { Violation } from '../violation.ts'
import { unserved } from './sharing.ts'

/**
 * A waiter acquires the name in time, whatever the faults. A name that is never acquired again is a deadlock, and so is a
 * waiter of a shared name that is not served.
 */
export function liveness(trace: Trace, idles: readonly Idle[]): Violation[] {
  const idle = idles.filter(({ from, to, limit }) => to - from > limit).map(each => violation(trace, each))
  return [...idle, ...unserved(trace)]
}

function violation({ acquisitions, grants }: Trace, { name, from, to, fault, limit }: Idle): Violation {
  const ofName = [...acquisitions.values()].filter(each => each.name === name)
  const asker = ofName.findLast(({ asked }) => asked < to)
  const last = grants.get(name)?.findLast(({ granted }) => granted <= from)
  const since = last?.believedUntil ?? 0
  // A client that died during a request may hold a lease that it never heard of.
  const dead = ofName.filter(({ died }) => died >= since && died <= to).sort((one, other) => one.died - other.died)[0]
  const isAcquired = grants.get(name)?.some(({ granted }) => granted >= to) === true
  const after = fault
    ? ` after the fault ${fault.what} (${fault.target})`
    : dead
      ? ` after client ${dead.client} died`
      : ''
  const before = since < from ? `; its last holder held it until ${seconds(since)}` : ''
  return {
    promise: fault && isAcquired ? 'faults' : 'deadlock',
    at: to,
    name,
    what: `no client held it for ${ms(to - from)}${after}, although clients waited; ${ms(limit)} are allowed${before}`,
    ops: [...new Set([last, dead, asker].flatMap(each => each?.op ?? []))],
  }
}

/** How long it took to acquire the names of dead holders, in milliseconds: longest last. */
export function recoveriesOf({ holdings, run }: Trace): number[] {
  return run.names
    .filter(name => !run.shared?.[name])
    .flatMap(name => {
      const holders = (holdings.get(name) ?? []).map(({ acquisition }) => acquisition)
      const next = nextGrants(holders)
      return holders.flatMap((older, index) => {
        const newer = next[index]
        const isDeath = newer && older.died < Math.min(older.releasing, newer.granted)
        return isDeath ? [newer.granted - Math.max(older.died, newer.asked)] : []
      })
    })
    .sort((one, other) => one - other)
}
