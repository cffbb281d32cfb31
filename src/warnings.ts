import { events } from './events.ts'

/** Stable codes of warnings, for programs and for searches; docs/errors.md explains each. */
export type WarningCode =
  /** Redis may drop leases when its memory is full. */
  | 'HOLDFAST_EVICTION'
  /** The function that makes labels for metrics failed. */
  | 'HOLDFAST_LABELS'

const given = new Set<string>()

/**
 * Warns by `process.emitWarning` and by the event `warning`, once per process for each code and `cause`. The cause tells
 * apart what each deserves a warning of its own, such as a host or a name.
 */
export function warn(code: WarningCode, message: string, cause = ''): void {
  const key = `${code} ${cause}`
  if (given.has(key)) return
  given.add(key)
  process.emitWarning(message, { type: 'HoldfastWarning', code })
  if (events.warning.hasSubscribers) events.warning.publish({ code, message })
}
