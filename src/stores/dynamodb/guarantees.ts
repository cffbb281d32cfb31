import type { Guarantees } from '../../contract/store.ts'

/** What is special about DynamoDB. */
export const guarantees: Partial<Guarantees> = {
  durability: 'DynamoDB keeps every change in several availability zones before it answers',
  limits: [
    'A global table with eventual consistency does not exclude clients of two regions from each other: use one region.',
    'A table that is restored from a backup may free names that are held, and repeat tokens if the wall clock of a process is then behind the last grant.',
  ],
}
