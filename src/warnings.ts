import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'
import { events } from './events.ts'

/** Stable codes of warnings. docs/errors.md explains each. */
export type WarningCode =
  /** A Redis client selected another database after its store was created. */
  | 'HOLDFAST_DATABASE'
  /** Redis may evict leases when its memory is full. */
  | 'HOLDFAST_EVICTION'
  /** Redlock has an even number of servers. */
  | 'HOLDFAST_EVEN_QUORUM'
  /** A lease is still renewed, but the program dropped every reference to it. */
  | 'HOLDFAST_LEASE_DROPPED'
  /** The `labels` function of the metrics failed. */
  | 'HOLDFAST_LABELS'
  /** A majority of the servers of Redlock is in quarantine, so no leases are granted for now. */
  | 'HOLDFAST_QUARANTINE'
  /** A password is sent to another machine without TLS. */
  | 'HOLDFAST_PASSWORD_IN_CLEAR'
  /** A call waits for a name that the same locks hold, perhaps forever. */
  | 'HOLDFAST_SELF_WAIT'
  /** Redis refuses to notify waiters. */
  | 'HOLDFAST_WAKES'

/** Warnings per code: a program may use any number of names. */
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
  process.emitWarning(message, { type: 'HoldfastWarning', code })
  if (events.warning.hasSubscribers) events.warning.publish({ code, message })
}
