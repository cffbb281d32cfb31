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
