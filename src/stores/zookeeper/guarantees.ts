import type { Guarantees } from '../../contract/store.ts'

export const guarantees: Guarantees = {
  scope: 'network',
  exclusion:
    'always, unless the process of the leader stands still for as long as a session lasts and then goes on, or its monotonic clock runs faster than that of the holder by more than 1 %; fencing decides then',
  token:
    'the number of the transaction that let the claim hold (zxid), which the ensemble counts for all names, so that it rises through everything but the loss of all data',
  order: 'first come, first served',
  waiting: 'pushed',
  shortestTtl: 300,
  longestUnattended: 24_000, // 0.6 of the longest session, unless the server was set otherwise
  clock: 'the monotonic clock of the leader; no wall clock decides anything',
  durability:
    'a majority of the ensemble has every grant on its disks before it is answered, and sessions survive restarts and elections',
  limits: [
    'A holder that died is followed after 5/3 of its ttl, and up to an eighth of that and a tick of the server; after an election in that time, after as much again.',
    'The server has a shortest session (two ticks, 4 s unless set otherwise): leases of a shorter ttl last as long as that when their holder dies.',
    'The server has a longest session (20 ticks, 40 s unless set otherwise): a longer ttl than 0.6 of it is refused.',
    'A waiter at the head of the line that stands still costs the next its turn of 100 ms, and loses its place to it.',
    'What remains of a lease is not known to others: inspect shows its ttl.',
  ],
}
