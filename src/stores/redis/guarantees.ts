import type { Guarantees } from '../../contract/store.ts'
import type { Driver } from './client.ts'

/** What a Redis server, a Sentinel group or a cluster promises; it is the same for each node. */
export function guaranteesOf(driver: Driver): Guarantees {
  return {
    scope: 'network',
    exclusion:
      'while the server neither forgets what it acknowledged (restart without data, failover to a replica that missed a write, eviction) nor has its wall clock set forward; fencing decides then',
    token:
      'a counter per name that outlives the lease by 24 hours, never below the wall clock of the server in microseconds, so that it rises across a loss of data unless the clock went back by more than the outage',
    order: 'first come, first served',
    waiting: driver.canListen ? 'pushed' : 'polled',
    shortestTtl: 100,
    clock: 'the wall clock of the Redis server',
    durability:
      'as much as Redis itself: what its append-only file or its snapshot held survives a restart, and what had reached the replica survives a failover',
    limits: [
      'A failover to a replica that missed a write, or a restart without data, frees names that are held.',
      'A step forward of the wall clock of the server ends leases early; a step back makes them last longer, by at most one more ttl once another claim asks.',
      'A step back of the wall clock of the server lets a request that was held up on the way be carried out for as much longer.',
      'An eviction policy other than noeviction may drop leases.',
      'WAIT is not used: it narrows the window of a failover and does not close it.',
      'A waiter at the head of the line that stopped, but is still connected, costs the next its turn of 100 ms; if it had asked within the last 100 ms, or all of the first ten waiters are of its process, up to a third of the ttl of the next.',
      ...(driver.canListen
        ? []
        : [
            'Waiters that poll may overtake each other from the third place on: they ask less often than turns change.',
          ]),
    ],
  }
}
