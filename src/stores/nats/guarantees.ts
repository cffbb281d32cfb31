import type { Guarantees } from '../../contract/store.ts'

/** What is special about NATS. */
export const guarantees: Partial<Guarantees> = {
  durability:
    'a majority of the replicas of the bucket has each write before it is answered; unless sync_interval is always, each syncs its disk only every 2 minutes, so a power failure of all loses the last writes',
  limits: [
    'A leader that was paused or cut off may for a moment answer reads with what was before. So a refusal or an inspection may be that old. Grants and losses are not: each follows a write.',
    'A bucket that is deleted and created again counts its revisions from the beginning, and so do names: tokens then begin at the wall clock of the process. End all holders first: a renewal of theirs may meet the revision that it knew.',
  ],
}
