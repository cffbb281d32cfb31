import type { Guarantees } from '../../contract/store.ts'

/** What a file of SQLite promises. */
export const guarantees: Guarantees = {
  scope: 'machine',
  exclusion:
    'always, unless the wall clock steps forward by more than remains of a lease while its holder is stopped or busy, ' +
    'or the file is deleted or replaced while in use',
  token:
    'one counter for the file, never below the wall clock in microseconds, so that it rises also when the file was ' +
    'deleted, unless the clock went back meanwhile',
  order: 'first come, first served',
  waiting: 'pushed',
  shortestTtl: 200,
  clock: 'the wall clock of the machine',
  durability: 'every grant, renewal and release is synced to the disk (WAL, synchronous=FULL) before it is answered',
  limits: [
    'Other machines do not share it: a file on a network file system is refused where it can be told.',
    'A transaction runs in the main thread: a disk that stalls blocks the event loop, heartbeats included.',
    'A process stopped in the middle of a transaction keeps all others from the file until it runs on or ends.',
    'A release by another process is noticed after 2 ms, or after 75 where the system tells nothing of changed files.',
    'The file must not be opened in the same process by another copy of SQLite, such as that of better-sqlite3.',
  ],
}
