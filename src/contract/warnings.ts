import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'
import { messageOf } from './errors.ts'
import { events } from './events.ts'
import { messageText } from './reserved.ts'
import type { WarningCode } from './warning-code.ts'

/** The most causes per code that are warned about, because a program may use any number of names. */
const MOST_CAUSES = 10

// Threads that start later get a copy, so that they do not repeat a warning.
const GIVEN = 'holdfast warnings'

/**
 * Warns by `process.emitWarning` and the event `warning`, once per process for each code and `cause`, and for at most ten
 * causes of a code. A cause is what deserves its own warning, such as a host or a name.
 */
export function warn(code: WarningCode, message: string, cause = ''): void {
  const given = (getEnvironmentData(GIVEN) ?? new Map()) as Map<WarningCode, ReadonlySet<string>>
  const causes = new Set(given.get(code))
  if (causes.has(cause) || causes.size >= MOST_CAUSES) return
  setEnvironmentData(GIVEN, given.set(code, causes.add(cause)))
  emit(code, message)
}

/** Warns at each call, with the error and its stack. Use it for a cause that may end and come back. */
export function warnAgain(code: WarningCode, message: string, error: unknown): void {
  emit(code, `${message}: ${messageOf(error)}`, error instanceof Error ? error.stack : undefined)
}

function emit(code: WarningCode, text: string, detail?: string): void {
  const message = messageText(text)
  process.emitWarning(message, { type: 'HoldfastWarning', code, ...(detail && { detail }) })
  events.warning.publish({ code, message })
}
