import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'
import { events } from './events.ts'

/** Stable codes of warnings, for programs and for searches; docs/errors.md explains each. */
export type WarningCode =
  /** A client of Redis selected another database after its leases were given theirs. */
  | 'HOLDFAST_DATABASE'
  /** Redis may drop leases when its memory is full. */
  | 'HOLDFAST_EVICTION'
  /** Redlock has an even number of servers. */
  | 'HOLDFAST_EVEN_QUORUM'
  /** A lease is still renewed, but the program lost every reference to it. */
  | 'HOLDFAST_LEASE_DROPPED'
  /** The function that makes labels for metrics failed. */
  | 'HOLDFAST_LABELS'
  /** A majority of the servers of Redlock may have forgotten leases and grants none for now. */
  | 'HOLDFAST_QUARANTINE'
  /** A password goes to another machine without TLS. */
  | 'HOLDFAST_PASSWORD_IN_CLEAR'
  /** A call waits for a name that the same locks hold, perhaps for ever. */
  | 'HOLDFAST_SELF_WAIT'
  /** Redis refuses to notify waiters. */
  | 'HOLDFAST_WAKES'

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
