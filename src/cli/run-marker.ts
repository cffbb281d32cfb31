import { MARKER_SUFFIX } from '../contract/reserved.ts'
import type { LeaseRecord, Locks } from '../index.ts'

/** The note of a marker. */
export const MARKER_NOTE = 'a run succeeded; --skip-if-ran-since skips runs until this lease ends'

/** The lease that marks a successful run of NAME for `--skip-if-ran-since`. Nobody renews it. */
export function markerOf(name: string): string {
  return name + MARKER_SUFFIX
}

/** The marker of a name, if a run of it succeeded lately. */
export async function inspectMarker(locks: Locks, name: string): Promise<LeaseRecord | undefined> {
  return (await locks.inspect(markerOf(name))).holders[0]
}

/** Is this the name of a marker? It has no holder that could still be working. */
export async function isMarker(locks: Locks, name: string): Promise<boolean> {
  return name.endsWith(MARKER_SUFFIX) && (await locks.inspect(name)).holders[0]?.note === MARKER_NOTE
}
