import type { Guarantees } from '../../contract/store.ts'

/** The guarantees of a store inside a process. */
export const guarantees: Guarantees = {
  scope: 'process',
  exclusion: 'always, within the process',
  token:
    'a counter, never below the wall clock in microseconds; it falls only if the process restarts and the clock is then behind the last grant',
  order: 'first come, first served',
  sharing: 'slots',
  waiting: 'pushed',
  minTtl: 10,
  clock: 'the monotonic clock of the process, and forward steps of its wall clock',
  durability: 'nothing survives the process',
  limits: ['Other processes, and worker threads, do not share it.'],
}
