import type { Guarantees } from '../../contract/store.ts'

/** What a majority of so many independent servers promises. */
export function guaranteesOf(nodes: number, canListen: boolean, trustRestarted: boolean): Guarantees {
  const failures = nodes - Math.floor(nodes / 2) - 1
  return {
    scope: 'network',
    exclusion:
      'while no majority of the servers forgets a lease or has its wall clock set forward during its ttl; fencing decides then',
    token:
      'the highest token of a majority, which is written back to a majority before it is handed out: no clock is needed for the order; never below the wall clock of the client in microseconds, so that it rises across a loss of data unless the clock went back by more than the outage',
    order: 'not promised',
    waiting: canListen ? 'pushed' : 'polled',
    shortestTtl: 200,
    clock: 'the wall clock of each server, for its own vote',
    durability: trustRestarted
      ? `${failures} of ${nodes} servers may be lost; a server that restarts is trusted (trustRestarted), and must not have forgotten what it acknowledged`
      : `${failures} of ${nodes} servers may be lost; one that may have forgotten gives no lease for maxTtl, so that it can do no harm`,
    limits: [
      'A step forward of the wall clocks of a majority ends leases early; a step back makes them last longer.',
      'A server whose wall clock is set forward ends its quarantine early: mutual exclusion may then be lost; tokens still rise, unless the clock of a client went back by more than the outage and maxTtl besides.',
      'Waiters may overtake each other: each server has a line of its own, and whoever gets a majority first holds.',
      'Of two who try in the same moment neither may get a majority; they try again after 50 to 150 ms.',
      'A server that copies the data of another (replication, a shared snapshot) after both were in use is noticed by its replication id, but not a copy of files made by hand.',
      'All clients must name the same servers, with the same prefix and maxTtl.',
      'An eviction policy other than noeviction may drop leases and what tells that they were dropped.',
    ],
  }
}
