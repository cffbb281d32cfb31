import type { Guarantees } from '../../contract/store.ts'
import type { RedisDriver } from './client.ts'

/** The guarantees of a Redis server, a Sentinel group or a cluster. They are the same for each node. */
export function guaranteesOf(driver: RedisDriver): Guarantees {
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
      'as much as Redis itself: a restart keeps what is in its append-only file or snapshot, and a failover keeps what has reached the replica',
    limits: [
      'A failover to a replica that missed a write, or a restart without data, frees names that are held.',
      'A step forward of the wall clock of the server ends leases early; a step back makes them last longer, by at most one more ttl once another claim asks.',
      'A step back of the wall clock of the server extends the time in which a delayed request is carried out.',
      'An eviction policy other than noeviction may drop leases.',
      'WAIT is not used: it narrows the window of a failover and does not close it.',
      'If the first waiter hangs but stays connected, the next one waits for a grace period of 100 ms. It waits up to a third of its own ttl if the first asked within the last 100 ms, or if the first ten waiters belong to one process.',
      ...(driver.canListen
        ? []
        : [
            'Waiters that poll may overtake each other from the third position on, because they ask less often than grace periods pass.',
          ]),
    ],
  }
}
