import type { Guarantees } from '../../contract/store.ts'
import type { RedisDriver } from './client.ts'

/** What a Redis server, a Sentinel group or a cluster promises; it is the same for each node. */
export function guaranteesOf(driver: RedisDriver): Guarantees {
  return {
    scope: 'network',
    exclusion:
      'while the server keeps what it acknowledged, and its wall clock is not set forward; fencing decides otherwise',
    token:
      'a counter per name, kept 24 hours after the lease, never below the wall clock of the server in microseconds; it rises after a loss of data unless the clock went back by more than the outage',
    order: 'first come, first served',
    waiting: driver.canListen ? 'pushed' : 'polled',
    shortestTtl: 100,
    clock: 'the wall clock of the Redis server',
    durability: 'that of Redis: its append-only file or snapshot survives a restart, its replica a failover',
    limits: [
      'A failover to a replica that missed a write, or a restart without data, frees held names.',
      'A wall clock of the server that is set forward ends leases early. One that is set back extends them, by at most one ttl once another claim asks.',
      'A wall clock of the server that is set back lets a delayed request be carried out for that much longer.',
      'An eviction policy other than noeviction may drop leases.',
      'WAIT is not used: it narrows the window of a failover and does not close it.',
      'A first waiter that is paused but connected delays the next by 100 ms; by up to a third of its ttl if the first asked within the last 100 ms, or if the first ten waiters are of one process.',
      ...(driver.canListen ? [] : ['Waiters that poll may overtake each other from the third position on.']),
    ],
  }
}
