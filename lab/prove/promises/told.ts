import type { Acquisition } from '../acquisition.ts'
import { excuseOf, type Overlap, pauseOf, STALL } from '../overlap.ts'
import type { Trace } from '../trace.ts'
import type { Violation } from '../violation.ts'

/** A holder knows of its loss, by a look or by the signal, before another holds. */
export function told(trace: Trace, overlaps: readonly Overlap[]): Violation[] {
  const looked = overlaps.filter(({ excuse }) => !excuse).map(believed)
  const known = new Set(overlaps.map(({ older }) => older))
  return [...looked, ...losses(trace).flatMap(loss => (known.has(loss.older) ? [] : untold(trace, loss)))]
}

function believed({ older, newer, from, isByLook }: Overlap): Violation {
  const late = (older.actedUntil - from).toFixed(1)
  const what = isByLook
    ? `client ${older.client} believed to hold it for ${late} ms after client ${newer.client} was granted it`
    : `client ${older.client} wrote ${late} ms after client ${newer.client} was granted it, and was never stopped`
  return { promise: 'told', at: from, name: older.name, what, ops: [older.op, newer.op] }
}

/** A lease that was not given back, and who had the name next. */
interface Loss {
  readonly older: Acquisition
  readonly newer: Acquisition
}

function losses({ grants }: Trace): Loss[] {
  return [...grants.values()].flatMap(all => {
    const granted = all.filter(({ held }) => held)
    return granted.flatMap((older, index) => {
      const newer = granted[index + 1]
      return newer && Math.min(older.releasing, older.died) > newer.granted ? [{ older, newer }] : []
    })
  })
}

/** The signal aborts by a timer, for which the process must run: but a look would have told it. */
function untold(trace: Trace, { older, newer }: Loss): Violation[] {
  const latest = newer.granted + STALL
  if (older.over <= latest || trace.end <= latest) return []
  if (pauseOf(trace, older, latest) || excuseOf(trace, older, newer.granted)) return []
  const what = `client ${older.client} was not told within ${STALL} ms that client ${newer.client} was granted it`
  return [{ promise: 'told', at: latest, name: older.name, what, ops: [older.op, newer.op] }]
}

/** By how many milliseconds losses were told before another was granted the name: least first, negative if after. */
export function marginsOf(trace: Trace): number[] {
  return losses(trace)
    .map(({ older, newer }) => newer.granted - Math.min(older.lost, older.believedUntil))
    .sort((one, other) => one - other)
}
