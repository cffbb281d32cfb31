import type { Guarantees } from '../../contract/store.ts'
import { POLL } from '../cas/waiting.ts'

/**
 * Milliseconds that are taken off the age of a blob. `Date` and `Last-Modified` are whole seconds, and come from two servers
 * of Azure, whose clocks may differ by the rest.
 */
export const MARGIN = 3_000

export const guarantees: Partial<Guarantees> = {
  exclusion:
    'while the primary region keeps what it confirmed, the clocks of machines run equally fast, and those of two servers of Azure Storage differ by less than 2 s; fencing decides otherwise',
  takeover: { least: 0, extra: MARGIN + POLL },
  clock:
    'the monotonic clock of each process, and the age of the blob (Date less Last-Modified, less 3 s) by the clocks of Azure Storage',
  durability: 'each write is on three disks of the primary region before it is answered',
  limits: [
    'A failover to another region loses what was not copied there: names that are held may be free, and tokens may fall.',
    'Azure promises nothing about the clocks of its servers. If two differ by more than 2 s, a lease may end early for another process.',
    'A process that has not seen the last renewal of a dead holder takes over up to 3 s later than others.',
  ],
}
