import type { Guarantees } from '../../contract/store.ts'

export const guarantees: Guarantees = {
  scope: 'network',
  exclusion:
    'while the server neither loses what it acknowledged (failover to an asynchronous replica that missed a write) nor has its wall clock set forward; fencing decides otherwise',
  token:
    'a counter in the row of the name, never below the wall clock of the server in microseconds; rows that Holdfast deletes leave the highest token behind; it falls only if rows are lost and the clock is then behind the last grant',
  order: 'first come, first served',
  sharing: 'slots',
  waiting: 'polled',
  minTtl: 200,
  clock: 'the wall clock of the MySQL server',
  durability:
    'every change is committed before it is answered, and the server is refused if it does not sync each commit (innodb_flush_log_at_trx_commit)',
  limits: [
    'A failover to an asynchronous replica that missed a write frees names that are held.',
    'A step forward of the wall clock of the server ends leases early; a step back makes them last longer, by at most one more ttl once another claim asks.',
    'With a binary log and sync_binlog other than 1, a power failure may undo commits.',
    'While a transaction has a row of a lease locked, that name is neither granted nor renewed.',
    'Waiters that poll may overtake each other from the third position on, because they ask less often than grace periods pass.',
  ],
}
