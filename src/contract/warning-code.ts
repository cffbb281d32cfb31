/** Stable codes of warnings. docs/reference/errors.md explains each. */
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
  /** The work of `once` has succeeded, but the store did not mark it. */
  | 'HOLDFAST_NOT_MARKED'
  /** The `onError` function of an election failed. */
  | 'HOLDFAST_ON_ERROR'
  /** With NODE_ENV=production, `memory:` was opened: other processes do not share it. */
  | 'HOLDFAST_MEMORY'
  /** The process ends because its event loop is empty, and holds a lease. */
  | 'HOLDFAST_LOOP_EMPTY'
  /** `close()` waited for a lease that was acquired and not released. */
  | 'HOLDFAST_NOT_RELEASED'
  /** A majority of the servers of Redlock is in quarantine, so no leases are granted for now. */
  | 'HOLDFAST_QUARANTINE'
  /** A password is sent to another machine without TLS. */
  | 'HOLDFAST_PASSWORD_IN_CLEAR'
  /** A call waits for a name that the same locks hold, perhaps forever. */
  | 'HOLDFAST_SELF_WAIT'
  /** The work of a leader failed. It is tried again. */
  | 'HOLDFAST_TERM_FAILED'
  /** Redis refuses to notify waiters. */
  | 'HOLDFAST_WAKES'
