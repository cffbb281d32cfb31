import type { Guarantees } from '../../contract/store.ts'

/** Milliseconds between two searches by etcd for leases that have ended. */
export const SWEEP = 500

/** The shortest ttl in milliseconds: one and a half election timeouts of 1 s, etcd's default. */
const LEAST_TTL = 2_000

/** The guarantees of an etcd cluster. */
export const guarantees: Guarantees = {
  scope: 'network',
  exclusion:
    'while a majority of the cluster keeps its data, the monotonic clocks of the leader and the holder run at one speed, and no leader that was replaced ends leases (etcd before 3.4.31 and 3.5.13); fencing decides otherwise',
  token:
    'the create revision of the key of the holder: one counter for the cluster, by Raft, which no clock affects; it falls only if the cluster loses all its data, or a backup is restored without --bump-revision',
  order: 'first come, first served',
  sharing: 'slots',
  waiting: 'pushed',
  minTtl: 1_000,
  takeover: { step: 1_000, least: LEAST_TTL, extra: 2 * SWEEP },
  clock: 'the monotonic clock of the leader of the etcd cluster',
  durability:
    'every grant and release is on the disks of a majority before it is answered; renewals are in the memory of the leader',
  limits: [
    'A ttl is rounded up to whole seconds, and to the shortest that the servers grant: 2 s with their default settings.',
    'A lease that is not renewed may end a tenth of its ttl early, because leases of etcd are used again. The grant says so.',
    'A new leader restarts the time of every lease. So if a holder dies just before an election, its name is free after at most twice its ttl and the election.',
    'Before etcd 3.4.31 and 3.5.13, a leader that was replaced because it was paused, or its disk or processor was too slow, may end leases that are renewed through its successor. Holders notice at their next renewal.',
    'A cluster restored from a backup repeats revisions, and so tokens, unless they are raised by --bump-revision.',
    'A key that is deleted by another program is noticed at the next renewal, not at the release.',
    'Permits and readers that calls of one process ask for at once are granted one after the other, with about three round trips each. Calls that do not wait may then reject STORE_UNAVAILABLE after a second.',
    'If the first waiter hangs, the next takes the name after a grace period of 100 ms and twice the round trip of the first (at most 1.1 s), counted from when its process saw that the name was free. A claim that does not queue gets the name only after the positions of dead waiters lapse, within 5 s.',
    'If the heartbeat thread has changed the ttl of a lease by extend(), and could not end the etcd lease before it, a release may answer released while the name stays held until the new ttl ends.',
  ],
}
