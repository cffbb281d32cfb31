import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'
import { events } from './events.ts'
import type { WarningCode } from './warning-code.ts'

/** Causes of one code that are warned of: a program may use any number of names. */
const MOST_CAUSES = 10

// A thread that is started later gets a copy, so that it does not repeat what was warned of.
const GIVEN = 'holdfast warnings'

/**
 * Warns by `process.emitWarning` and by the event `warning`, once per process for each code and `cause`, and for at most
 * ten causes of a code. The cause is what deserves its own warning, such as a host or a name.
 */
export function warn(code: WarningCode, message: string, cause = ''): void {
  const given = (getEnvironmentData(GIVEN) ?? new Map()) as Map<WarningCode, ReadonlySet<string>>
  const causes = new Set(given.get(code))
  if (causes.has(cause) || causes.size >= MOST_CAUSES) return
  setEnvironmentData(GIVEN, given.set(code, causes.add(cause)))
  process.emitWarning(message, { type: 'HoldfastWarning', code })
  if (events.warning.hasSubscribers) events.warning.publish({ code, message })
}
