import { MARKER_SUFFIX } from '../contract/reserved.ts'
import type { LeaseRecord, Locks } from '../index.ts'

/** Of earlier builds. Such markers still count, until they end. */
const OLD_SUFFIX = ':ran'

/** The note of a marker. */
export const MARKER_NOTE = 'a run succeeded; --skip-if-ran-since skips runs until this lease ends'

/** The lease that marks a successful run of NAME for `--skip-if-ran-since`. Nobody renews it. */
export function markerOf(name: string): string {
  return name + MARKER_SUFFIX
}

/** The marker of a name, if a run of it succeeded lately. */
export async function inspectMarker(locks: Locks, name: string): Promise<LeaseRecord | undefined> {
  const { holder } = await locks.inspect(markerOf(name))
  if (holder) return holder
  const { holder: old } = await locks.inspect(name + OLD_SUFFIX)
  return old?.note === MARKER_NOTE ? old : undefined
}

/** Is this the name of a marker, of today or before? A marker has no holder that could still be working. */
export async function isMarker(locks: Locks, name: string): Promise<boolean> {
  if (!name.endsWith(MARKER_SUFFIX) && !name.endsWith(OLD_SUFFIX)) return false
  return (await locks.inspect(name)).holder?.note === MARKER_NOTE
}
