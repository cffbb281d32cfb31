// What holdfast-lab uses of the command line. The lab declares it in lab/cli/command-line.ts.
import { engineOf } from '../engines.ts'
import { Signals } from './signals.ts'

export { parse, seeHelp, suggest } from './arguments.ts'
export { formatDuration, parseDuration } from './duration.ts'
export { Usage } from './failure.ts'
export { mask, Output, paint } from './output.ts'
export { storeUrl } from './store-url.ts'

export function stopSignal(when: string): AbortSignal {
  return new Signals(when).stop
}

/** Deletes what the store of a URL has stored of these names. */
export async function forgetNames(url: string, names: readonly string[]): Promise<void> {
  await engineOf(url).forgetNames?.(url, names)
}
