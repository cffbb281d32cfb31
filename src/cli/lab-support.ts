// What holdfast-lab uses of the command line. The lab declares it in lab/cli/command-line.ts.
import { Signals } from './signals.ts'

export { parse, seeHelp, suggest } from './arguments.ts'
export { formatDuration, parseDuration } from './duration.ts'
export { Usage } from './failure.ts'
export { mask, Output, paint } from './output.ts'
export { storeUrl } from './where.ts'

export function stopSignal(when: string): AbortSignal {
  return new Signals(when).stop
}

/** Removes what a store keeps of names. SQLite, etcd and ZooKeeper keep nothing of a name without a holder or a waiter. */
export async function forgetNames(url: string, names: readonly string[]): Promise<void> {
  if (/^rediss?:/i.test(url)) return (await import('../stores/redis/open.ts')).forgetNames(url, names)
  if (/^redlocks?:/i.test(url)) return (await import('../stores/redlock/open.ts')).forgetNames(url, names)
  if (/^postgres(ql)?:/i.test(url)) return (await import('../stores/postgres/open.ts')).forgetNames(url, names)
}
