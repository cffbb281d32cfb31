import type { Guarantees } from '../../contract/store.ts'
import type { RedisDriver } from './client.ts'

/** The guarantees of a Redis server, a Sentinel group or a cluster. They are the same for each node. */
export function guaranteesOf(driver: Pick<RedisDriver, 'isCluster' | 'canListen'>): Guarantees {
  return {
    scope: 'network',
    exclusion:
      'while the server keeps what it acknowledged, and its clock is not set forward; fencing decides otherwise',
    token:
      (driver.isCluster
        ? 'a counter per name, kept for 24 hours; '
        : 'one counter of all names, so it rises whatever the clock does; ') +
      'never below the clock of the server in microseconds; after a loss of data it rises unless that clock went back by more than the outage',
    order: 'first come, first served',
    waiting: driver.canListen ? 'pushed' : 'polled',
    sharing: 'slots',
    minTtl: 100,
    clock: 'the wall clock of the Redis server',
    durability: 'that of Redis: of its append-only file or snapshot in a restart, of the replica in a failover',
    limits: [
      'A restart without data, or a failover to a replica that missed a write, frees held names.',
      'If its clock is set forward, leases end early; if it is set back, they last longer, by at most one ttl once another claim asks (of several holders: the longest).',
      'If its clock is set back, a stale request may take effect for that much longer.',
      'An eviction policy other than noeviction may drop leases.',
      'WAIT is not used: it narrows the window of a failover and does not close it.',
      'A first waiter that is paused delays the next by 100 ms and its round trip (at most 1.1 s), several by up to 5 s.',
      ...(driver.canListen ? [] : ['Waiters that poll may overtake each other from the third position on.']),
    ],
  }
}
