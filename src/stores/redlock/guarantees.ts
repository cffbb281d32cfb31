import type { Guarantees } from '../../contract/store.ts'

/** The guarantees of a majority of this many independent servers. */
export function guaranteesOf(nodes: number, canListen: boolean, trustRestarted: boolean): Guarantees {
  const failures = nodes - Math.floor(nodes / 2) - 1
  return {
    scope: 'network',
    exclusion: `while the servers that did not vote for a lease${trustRestarted ? ', forgot it' : ''} or had their wall clock set forward during its ttl are no majority; fencing decides otherwise`,
    token:
      'the highest token of a majority, which is written back to a majority before it is handed out: no clock is needed for the order; never below the wall clock of the client in microseconds, so that it rises across a loss of data unless the clock went back by more than the outage',
    order: 'not promised',
    waiting: canListen ? 'pushed' : 'polled',
    minTtl: 200,
    clock: 'the wall clock of each server, for its own vote',
    durability: trustRestarted
      ? `${failures} of ${nodes} servers may be lost; a restarted server is trusted (trustRestarted), and must not have lost what it acknowledged`
      : `${failures} of ${nodes} servers may be lost; a server that may have lost leases grants none for maxTtl`,
    limits: [
      'A step forward of the wall clock of a server ends its votes early. One such server is enough to lose a lease that only a bare majority voted for. A step back makes votes last longer.',
      'A server whose wall clock is set forward ends its quarantine early. Mutual exclusion may then be lost. Tokens still rise, unless the clock of a client also went back by more than the outage and maxTtl.',
      'A server that voted late for a lease, or lost its vote, and had seen a higher token by then, does not count for it: the lease tolerates one failure less. If no majority is left, the lease is reported as lost although nobody else holds it.',
      'If a server missed a change of a note, and others lose their data later, the earlier note may be shown again.',
      'Waiters may overtake each other: each server has its own queue, and the first claim with a majority holds.',
      'If two claims try at the same time, neither may get a majority. They try again after 50 to 150 ms.',
      'A server that copies the data of another by replication or a shared snapshot is detected by its replication id. A manual copy of files is not detected.',
      'All clients must name the same servers, with the same prefix and maxTtl.',
      'An eviction policy other than noeviction may drop leases, and the key that shows that data was lost.',
    ],
  }
}
