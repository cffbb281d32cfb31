import { type Acquisition, NEVER } from './acquisition.ts'
import { type Fault, isDuring, nextGrants, type Trace } from './trace.ts'

/** How long a busy machine may delay a process that is not paused, in milliseconds. */
export const STALL = 100

/** A client acted as holder of a name after a grant with a higher token, in most cases at the same time as its holder. */
export interface Overlap {
  /** The one with the lower token. */
  readonly older: Acquisition
  readonly newer: Acquisition
  readonly from: number
  readonly until: number
  /** Did a check say so, or a late write? */
  readonly isByCheck: boolean
  /** The fault that excuses it. */
  readonly excuse: string | undefined
  /** Of the writes of the older. `refused`: the fence refused one. `harmful`: one was accepted after one of the newer. */
  readonly effect: 'refused' | 'idle' | 'harmful'
}

/** A process cannot notice a pause between its check and its write: then the fence must refuse the write. */
export function overlapsOf(trace: Trace): Overlap[] {
  const overlaps: Overlap[] = []
  const seen = new Set<string>() // two permits may have several slots in common
  for (const all of trace.holdings.values()) {
    const holders = all.map(({ acquisition }) => acquisition).filter(({ held }) => held)
    const next = nextGrants(holders)
    for (const [index, older] of holders.entries()) {
      for (let last = index; (next[last]?.granted ?? NEVER) < older.actedUntil; last += 1) {
        const newer = holders[last + 1] as Acquisition
        const isAtOnce = newer.granted < older.actedUntil && newer.actedUntil > older.granted
        const pair = `${older.op} ${newer.op}`
        if (seen.has(pair) || !(isAtOnce || newer === next[index])) continue
        seen.add(pair)
        overlaps.push(overlap(trace, older, newer))
      }
    }
  }
  return overlaps.sort((one, other) => one.from - other.from)
}

function overlap(trace: Trace, older: Acquisition, newer: Acquisition): Overlap {
  const from = Math.max(older.granted, newer.granted)
  const isByCheck = older.believedUntil > newer.granted
  const paused = isByCheck ? undefined : pauseOf(trace, older, older.actedUntil)
  const isStall = !isByCheck && older.actedUntil - from < STALL
  return {
    older,
    newer,
    from,
    until: Math.min(older.actedUntil, newer.over),
    isByCheck,
    excuse: excuseOf(trace, older, newer.granted) ?? paused ?? (isStall ? 'a busy machine' : undefined),
    effect: effectOf(older, newer),
  }
}

/** The fault that may end this lease before its holder can know: a clock jump, or lost memory. */
export function excuseOf({ faults, excuses }: Trace, { client, sent }: Acquisition, until: number): string | undefined {
  if (!excuses) return undefined
  const mayEnd = (fault: Fault): boolean =>
    (fault.changesClock || fault.forgets) === true && (fault.client ?? client) === client
  return faults.find(fault => mayEnd(fault) && isDuring(fault, sent, until))?.what
}

/** The fault that paused its process after the last check. */
export function pauseOf(
  { faults }: Trace,
  { client, granted, checks }: Acquisition,
  until: number,
): string | undefined {
  const from = checks.at(-1)?.at ?? granted
  return faults.find(fault => fault.pausesClient === client && isDuring(fault, from, until))?.what
}

function effectOf(older: Acquisition, newer: Acquisition): Overlap['effect'] {
  const first = newer.writes.find(({ decision }) => decision?.kind === 'accepted')?.decision?.order ?? NEVER
  const decisions = older.writes.flatMap(({ decision }) => decision ?? [])
  if (decisions.some(({ kind, order }) => kind === 'accepted' && order > first)) return 'harmful'
  return decisions.some(({ kind }) => kind === 'rejected') ? 'refused' : 'idle'
}
