// These are the parts of the command line that holdfast-lab uses. lab/cli/command-line.ts declares their types.
import { engineOf } from '../engines.ts'
import { Signals } from './signals.ts'

export { parse, seeHelp, suggest } from './arguments.ts'
export { counted } from './counted.ts'
export { formatDuration, parseDuration } from './duration.ts'
export { Usage } from './failure.ts'
export { mask, Output, paint } from './output.ts'
export { storeUrl } from './store-url.ts'

export function stopSignal(when: string): AbortSignal {
  return new Signals(when).stop
}

/** Deletes all data of these names from the store of a URL. */
export async function forgetNames(url: string, names: readonly string[]): Promise<void> {
  await engineOf(url).forgetNames?.(url, names)
}
