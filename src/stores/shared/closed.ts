import { LeaseError } from '../../contract/errors.ts'

/** What a store rejects with after its end. */
export function closed(): LeaseError {
  return new LeaseError('CLOSED', 'the store is closed')
}
