import { type Acquisition, NEVER } from '../acquisition.ts'
import { excuseOf, type Overlap, pauseOf, STALL } from '../overlap.ts'
import { type Holding, isDuring, isJump, nextGrants, type Trace } from '../trace.ts'
import type { Violation } from '../violation.ts'

/** The part of a ttl by which clocks may differ at its end. */
const DRIFT = 0.02

/** A holder is notified of its loss, by a check or the signal, before the next grant. */
export function notification(trace: Trace, overlaps: readonly Overlap[]): Violation[] {
  const checked = overlaps.filter(({ excuse }) => !excuse)
  const known = new Set(checked.map(({ older }) => older))
  return [
    ...checked.map(believed),
    ...losses(trace).flatMap(loss => (known.has(loss.older) ? [] : missed(trace, loss))),
    ...cutShort(trace).filter(({ ops: [older] }) => !checked.some(({ older: { op } }) => op === older)),
  ]
}

/**
 * A lease that was not released lasts until the end that its holder's last check showed. Before, nobody else is granted the
 * name and the store does not say that the lease is gone, although its holder may be dead, or notified in time.
 */
function cutShort(trace: Trace): Violation[] {
  if (trace.run.endsWithConnection) return []
  const found = new Map<Acquisition, Violation>()
  for (const all of trace.holdings.values()) {
    const holders = all.map(({ acquisition }) => acquisition)
    const next = nextGrants(holders)
    for (const [index, older] of holders.entries()) {
      const { op, name, client, releasing, checks } = older
      const newer = next[index]
      const jump = trace.faults.find(each => isJump(each, client) && isDuring(each, older.granted, older.lost))
      if (jump && trace.run.endsByHolder && older.lost < (newer?.granted ?? NEVER)) continue
      const lost = jump ? NEVER : older.lost
      const at = Math.min(newer?.granted ?? NEVER, lost)
      const early = Math.max(...checks.map(({ until }) => until)) - at
      if (early <= DRIFT * trace.run.ttl || releasing < at || excuseOf(trace, older, at)) continue
      const what = newer && newer.granted <= lost ? `client ${newer.client} was granted it` : 'it was lost'
      const ops = newer && newer.granted <= lost ? [op, newer.op] : [op]
      const text = `the lease of client ${client} was not released, and ${what} ${early.toFixed(1)} ms before its end`
      found.set(older, { promise: 'notified', at, name, what: text, ops })
    }
  }
  return [...found.values()]
}

function believed({ older, newer, from, isByCheck }: Overlap): Violation {
  const late = (older.actedUntil - newer.granted).toFixed(1)
  const what = isByCheck
    ? `client ${older.client} believed to hold it for ${late} ms after client ${newer.client} was granted it`
    : `client ${older.client} wrote ${late} ms after client ${newer.client} was granted it, and was never stopped`
  return { promise: 'notified', at: from, name: older.name, what, ops: [older.op, newer.op] }
}

/** A lease that was not released, and the first later grant of the name that a client received. */
interface Loss {
  readonly older: Acquisition
  readonly newer: Acquisition
}

/** A permit has one loss, at the next grant of any of its slots. */
function losses({ holdings }: Trace): Loss[] {
  const first = new Map<Acquisition, Loss>()
  for (const loss of [...holdings.values()].flatMap(lossesOf)) {
    const { newer } = first.get(loss.older) ?? {}
    if (!newer || loss.newer.granted < newer.granted) first.set(loss.older, loss)
  }
  return [...first.values()]
}

function lossesOf(all: readonly Holding[]): Loss[] {
  const holders = all.map(({ acquisition }) => acquisition).filter(({ held }) => held)
  const next = nextGrants(holders)
  return holders.flatMap((older, index) => {
    const newer = next[index]
    return newer && Math.min(older.releasing, older.died) > newer.granted ? [{ older, newer }] : []
  })
}

/** The signal aborts by a timer, so the process must run. A check would have reported the loss anyway. */
function missed(trace: Trace, { older, newer }: Loss): Violation[] {
  const latest = newer.granted + STALL
  if (older.over <= latest || trace.end <= latest) return []
  if (pauseOf(trace, older, latest) || excuseOf(trace, older, newer.granted)) return []
  const what = `client ${older.client} was not notified within ${STALL} ms after client ${newer.client} was granted it`
  return [{ promise: 'notified', at: latest, name: older.name, what, ops: [older.op, newer.op] }]
}

/** How many milliseconds before the next grant a holder was notified. */
export interface Margin {
  /** Negative: after it. */
  readonly ms: number
  /** The clock jump, or the fault that lost data, which may have ended the lease early. */
  readonly cause: string | undefined
}

/** The least first. */
export function marginsOf(trace: Trace): Margin[] {
  return losses(trace)
    .map(({ older, newer }) => ({
      ms: newer.granted - Math.min(older.lost, older.believedUntil),
      cause: excuseOf(trace, older, newer.granted),
    }))
    .sort((one, other) => one.ms - other.ms)
}
