import { events, type LeaseEvents } from '../../contract/events.ts'

/** Reports that a server refused a request that was late, or whose claim was withdrawn. */
export function reportStaleRequest(store: string, reason: LeaseEvents['stale_request_refused']['reason']): void {
  if (events.stale_request_refused.hasSubscribers) events.stale_request_refused.publish({ store, reason })
}
