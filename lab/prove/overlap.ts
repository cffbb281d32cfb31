import { type Acquisition, NEVER } from './acquisition.ts'
import { isDuring, type Trace } from './trace.ts'

/** Milliseconds for which a process may stand still though nobody stopped it: the machine is busy. */
export const STALL = 100

/** Two acted as holders of one name at once. */
export interface Overlap {
  readonly older: Acquisition
  readonly newer: Acquisition
  readonly from: number
  readonly until: number
  /** Did a look say so, or a write that left late? */
  readonly isByLook: boolean
  /** What of it the engine does not promise to prevent. */
  readonly excuse: string | undefined
  /** `refused`: the fence refused a write of the older. `idle`: it tried none. `harmful`: a write of it came between. */
  readonly effect: 'refused' | 'idle' | 'harmful'
}

/** A pause between a look and a write cannot be seen by who is paused: then it is for the fence to refuse the write. */
export function overlapsOf(trace: Trace): Overlap[] {
  const overlaps: Overlap[] = []
  for (const granted of trace.grants.values()) {
    let acting: Acquisition[] = []
    for (const newer of granted.filter(({ held }) => held)) {
      acting = acting.filter(older => older.actedUntil > newer.granted)
      for (const older of acting) overlaps.push(overlap(trace, older, newer))
      acting.push(newer)
    }
  }
  return overlaps
}

function overlap(trace: Trace, older: Acquisition, newer: Acquisition): Overlap {
  const from = newer.granted
  const isByLook = older.believedUntil > from
  const stood = isByLook ? undefined : pauseOf(trace, older, older.actedUntil)
  const isStall = !isByLook && older.actedUntil - from < STALL
  return {
    older,
    newer,
    from,
    until: Math.min(older.actedUntil, newer.over),
    isByLook,
    excuse: excuseOf(trace, older, from) ?? stood ?? (isStall ? 'a busy machine' : undefined),
    effect: effectOf(older, newer),
  }
}

/** What may end a lease before its holder can know: a clock that was moved, or memory that was lost. */
export function excuseOf({ faults, excuses }: Trace, { asked }: Acquisition, until: number): string | undefined {
  if (!excuses) return undefined
  return faults.find(fault => (fault.changesClock || fault.forgets) && isDuring(fault, asked, until))?.what
}

/** Did its process stand still while it held? */
export function pauseOf({ faults }: Trace, { client, granted }: Acquisition, until: number): string | undefined {
  return faults.find(fault => fault.pausesClient === client && isDuring(fault, granted, until))?.what
}

function effectOf(older: Acquisition, newer: Acquisition): Overlap['effect'] {
  const first = newer.writes.find(({ decision }) => decision?.kind === 'accepted')?.decision?.order ?? NEVER
  const decisions = older.writes.flatMap(({ decision }) => decision ?? [])
  if (decisions.some(({ kind, order }) => kind === 'accepted' && order > first)) return 'harmful'
  return decisions.some(({ kind }) => kind === 'rejected') ? 'refused' : 'idle'
}
