import type { Locks } from '../../index.ts'
import { EXIT } from '../failure.ts'
import { MARKER_NOTE, MARKER_SUFFIX } from '../run-marker.ts'
import { query } from './query.ts'

/** `holdfast break`: takes a lease from its holder. Returns 1 if the name was free. */
export function breakLease(args: readonly string[]): Promise<number> {
  return query('break', 'NAME', args, async ({ argument: name, locks, output }) => {
    const isMarker = await isRunMarker(name, locks)
    const token = await locks.break(name)
    const text =
      token === undefined
        ? `${name} was free`
        : isMarker
          ? `${name} is removed: the next run with --skip-if-ran-since is not skipped`
          : `${name} is free. Token ${token} is higher than that of its old holder.\n` +
            'The old holder is notified at its next renewal and may work until then. A resource that checks tokens ' +
            'refuses it once it has seen a higher token.'
    output.print({ name, broken: token !== undefined, token }, text)
    return token === undefined ? EXIT.free : 0
  })
}

/** A run marker has no holder that could still be working. */
async function isRunMarker(name: string, locks: Locks): Promise<boolean> {
  return name.endsWith(MARKER_SUFFIX) && (await locks.inspect(name)).holder?.note === MARKER_NOTE
}
