import type { Guarantees } from '../../contract/store.ts'

/** The guarantees of lease rows. */
export function guaranteesOf(isPushed: boolean): Guarantees {
  return {
    scope: 'network',
    exclusion:
      'while the server neither loses what it acknowledged (failover to an asynchronous standby that missed a write, fsync switched off) nor has its wall clock set forward; fencing decides otherwise',
    token:
      'a counter in the row of the name, never below the wall clock of the server in microseconds; it falls only if the row is gone (24 hours after the lease, or lost) and the clock is then behind the last grant',
    order: 'first come, first served',
    sharing: 'slots',
    waiting: isPushed ? 'pushed' : 'polled',
    minTtl: 200,
    clock: 'the wall clock of the PostgreSQL server',
    durability:
      'every grant and renewal is committed (synchronous_commit, at least on) before it is answered; a crash may lose a release, and its lease then ends by its ttl',
    limits: [
      'A failover to an asynchronous standby that missed a write frees names that are held.',
      'A step forward of the wall clock of the server ends leases early; a step back makes them last longer, by at most one more ttl once another claim asks.',
      'A step back of the wall clock of the server extends the time in which a delayed request is carried out.',
      'While a transaction has the row of a lease locked (for update, or longer than a guard), that name is neither granted nor renewed.',
      'Thousands of calls of one process that begin to wait at once may be rejected if the ttl is a few seconds, and the process may lose its other leases. Thousands that time out at the same moment leave a row each until the next waiters come.',
      'If the first waiter hangs but stays connected, or died, the next one waits for a grace period of 100 ms and the round trip of the first (at most 1.1 s). If the first needs more slots than are free, or the first two hang or died, the others wait until these positions have lapsed, up to 5 s.',
      ...(isPushed
        ? []
        : [
            'Waiters that poll may overtake each other from the third position on, because they ask less often than grace periods pass.',
          ]),
    ],
  }
}
