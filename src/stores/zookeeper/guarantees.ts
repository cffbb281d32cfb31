import type { Guarantees } from '../../contract/store.ts'
import { SESSION_FACTOR } from './session.ts'

/** The default `tickTime` in milliseconds. ZooKeeper ends sessions at ticks, and grants none shorter than two ticks. */
const TICK = 2_000

/** The guarantees of a ZooKeeper ensemble. `shortestSession`: milliseconds. */
export function guaranteesOf(shortestSession: number): Guarantees {
  return {
    scope: 'network',
    exclusion:
      'always, unless the process of the leader hangs for as long as a session lasts and then continues, its monotonic clock runs faster than that of the holder by more than 1 %, or a session shorter than three ticks is kept over an observer with observerMasterPort; fencing decides then',
    token:
      'the id of the transaction that granted the name (zxid), which the ensemble counts for all names and no clock affects; it falls only if the ensemble loses all its data, or an old snapshot is restored',
    order: 'first come, first served',
    sharing: 'slots',
    waiting: 'pushed',
    minTtl: 300,
    maxUnattended: 24_000, // 0.6 of the longest session, unless the server is configured otherwise
    takeover: { factor: SESSION_FACTOR, least: Math.max(shortestSession, 2 * TICK), extra: TICK },
    clock: 'the monotonic clock of the leader; no wall clock decides anything',
    durability:
      'a majority of the ensemble has every grant on its disks before it is answered, and sessions survive restarts and elections',
    limits: [
      'When a holder dies, the next holds after 5/3 of its ttl, plus up to an eighth of that and a tick of the server. An election in that time can double it.',
      'The server has a shortest session, by default two ticks of 2 s. Leases with a shorter ttl last that long when their holder dies.',
      'The server has a longest session, by default 20 ticks of 2 s. A ttl longer than 0.6 of it is refused.',
      'If the first waiter hangs, the next looks after 100 ms and takes the name after up to 200 ms and twice the round trip of the first (at most 1.2 s).',
      'If several waiters in a row hang, or the first one hangs and what it wants is not free, they block those behind them until their sessions end. A waiter has a session of 5 s at most (sessionTimeout if that is longer), which the server ends up to a tick late.',
      'A renewal that is late, so that it comes more than a third of the ttl after the one before, may last less than the ttl, but at least half of it.',
      'A session shorter than three ticks over an observer with observerMasterPort may end up to a third of a tick before its holder knows.',
      'Other processes do not know what remains of a lease: inspect shows its ttl.',
    ],
  }
}
