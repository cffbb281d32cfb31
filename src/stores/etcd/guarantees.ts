import type { Guarantees } from '../../contract/store.ts'

/** What an etcd cluster promises. */
export const guarantees: Guarantees = {
  scope: 'network',
  exclusion:
    'while a majority of the cluster keeps its data, the monotonic clocks of the leader and the holder run at one speed, and no leader that was replaced ends leases (etcd before 3.4.31 and 3.5.13); fencing decides otherwise',
  token:
    'the create revision of the key that is held: one counter for the cluster, by Raft, which rises through release, expiry, break, restarts and changes of the leader',
  order: 'first come, first served',
  waiting: 'pushed',
  shortestTtl: 1_000,
  clock: 'the monotonic clock of the leader of the etcd cluster',
  durability:
    'every grant and release is on the disks of a majority before it is answered; renewals are in the memory of the leader',
  limits: [
    'A ttl is rounded up to whole seconds, and to the least that the servers grant: 2 s with their default settings.',
    'A new leader starts the time of every lease anew, so a name whose holder died in the moment of an election falls free after at most twice its ttl and the election.',
    'Before etcd 3.4.31 and 3.5.13 a leader that was stopped for long and goes on may end leases that are renewed through its successor: holders hear of it at their next renewal.',
    'A cluster restored from a backup repeats revisions, and so tokens, unless they are raised by --bump-revision.',
    'A key that is deleted by another program is noticed at the next renewal, not at the release.',
    'A waiter at the head of the line that stopped costs the next its turn of 100 ms; a claim that does not queue waits until the places of dead waiters lapse.',
  ],
}
