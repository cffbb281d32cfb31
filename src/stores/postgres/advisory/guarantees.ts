import type { Guarantees } from '../../../contract/store.ts'

/** The guarantees of session advisory locks. */
export function guaranteesOf(ttl: number): Guarantees {
  return {
    scope: 'network',
    exclusion:
      'while the server and the connection stay up: a failover, a restart or the end of the connection frees its names at once, and their holder may learn of it later; fencing decides otherwise',
    token:
      'a counter in a row of the name, committed after the lock was acquired and never below the wall clock of the server in microseconds; the row is never deleted; it falls only if the row is lost and the clock is then behind the last grant',
    order: 'not promised',
    waiting: 'polled',
    minTtl: 300,
    maxUnattended: 0,
    clock: 'timers of the server and of the holder, which nobody sets',
    durability: 'no lease survives a restart of the server or the end of the connection; tokens do',
    limits: [
      `All leases of one store end with its one connection, and nothing that lasts longer than ${ttl} ms is granted.`,
      `A process that ends frees its names at once. A machine that is cut off, or a process that hangs, frees them after ${ttl} ms.`,
      'Before PostgreSQL 14 the server has no such limit: a process that hangs holds its names for as long as it is connected.',
      'Waiters ask every 25 to 75 ms and may overtake each other.',
      'A lease cannot be broken: that would end all leases of its session. Nor can another process renew or release it.',
      '`once`, `@LeaseCron` and `--skip-if-ran-since` are refused: what they remember would end with the connection.',
      'A pooler is refused, in whatever mode.',
    ],
  }
}
