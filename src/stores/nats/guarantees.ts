import type { Guarantees } from '../../contract/store.ts'

/** What is special about NATS. */
export const guarantees: Partial<Guarantees> = {
  durability:
    'a majority of the replicas of the bucket has each write before it is answered; unless sync_interval is always (nats-server 2.10), each syncs its disk only every 2 minutes, so a power failure of all loses the last writes',
  limits: [
    'After a leader was paused or cut off, it may for a moment answer reads of what was before. So a refusal or an inspection may be that old. Grants are not affected, nor answers that a lease is gone: each follows a write. A lease that such a read shows as ended is not taken as over.',
    'NATS tells when a record was written by the wall clock of the leader of then, and does not tell the time of the leader of now, so nothing is judged by it.',
    'Before nats-server 2.10, a replicated bucket compares versions only with what is stored. So each write has a message id that names its predecessor, which the servers must keep for at least as long as a write may be under way: 2 minutes by default.',
    'A bucket that is deleted and created again counts its revisions from the beginning, and so do names: tokens then begin at the wall clock of the process. End all holders first: a renewal of theirs may meet the revision that it knew.',
  ],
}
