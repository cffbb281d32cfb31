import type { Guarantees } from '../../contract/store.ts'

/** The guarantees of an SQLite file. */
export const guarantees: Guarantees = {
  scope: 'machine',
  exclusion:
    'always, unless the wall clock steps forward by more than remains of a lease while its holder is paused or busy, ' +
    'or the file is deleted, replaced or given a second path while in use',
  token:
    'one counter for the file, never below the wall clock in microseconds; it falls only if the file is lost and the ' +
    'clock is then behind the last grant',
  order: 'first come, first served',
  sharing: 'slots',
  waiting: 'pushed',
  minTtl: 200,
  clock: 'the wall clock of the machine',
  durability: 'every grant, renewal and release is synced to the disk (WAL, synchronous=FULL) before it is answered',
  limits: [
    'Other machines do not share it. A file on a network file system is refused where that can be detected.',
    'A transaction runs in the main thread: a disk that stalls blocks the event loop, heartbeats included.',
    'A process that is paused in a transaction blocks all others until it continues or ends.',
    'A release by another process is noticed after 2 ms, or after 75 ms where the system does not report changed files.',
    'Another copy of SQLite in the same process, such as better-sqlite3, must not open the file.',
  ],
}
