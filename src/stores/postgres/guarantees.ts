import type { Guarantees } from '../../contract/store.ts'

/** What lease rows promise. */
export function guaranteesOf(isPushed: boolean): Guarantees {
  return {
    scope: 'network',
    exclusion:
      'while the server neither loses what it acknowledged (failover to an asynchronous standby that missed a write, fsync switched off) nor has its wall clock set forward; fencing decides then',
    token:
      'a counter in the row of the name, which outlives the lease by 24 hours, never below the wall clock of the server in microseconds, so that it rises across a loss of data unless the clock went back by more than the outage',
    order: 'first come, first served',
    waiting: isPushed ? 'pushed' : 'polled',
    shortestTtl: 200,
    clock: 'the wall clock of the PostgreSQL server',
    durability:
      'every grant and renewal is committed (synchronous_commit, at least on) before it is answered; a release may be forgotten by a crash, and its lease then ends by its ttl',
    limits: [
      'A failover to an asynchronous standby that missed a write frees names that are held.',
      'A step forward of the wall clock of the server ends leases early; a step back makes them last longer, by at most one more ttl once another claim asks.',
      'A step back of the wall clock of the server lets a request that was held up on the way be carried out for as much longer.',
      'While a transaction has a row of a lease locked (for update, or longer than a guard), that name is neither granted nor renewed.',
      'A waiter at the head of the line that stopped, but is still connected, costs the next its turn of 100 ms; if it had asked within the last 100 ms, or all of the first ten waiters are of its process, up to a third of the ttl of the next.',
      ...(isPushed
        ? []
        : [
            'Waiters that poll may overtake each other from the third place on: they ask less often than turns change.',
          ]),
    ],
  }
}
