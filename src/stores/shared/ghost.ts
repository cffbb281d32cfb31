import { events, type LeaseEvents } from '../../contract/events.ts'

/** Tells that a server refused a request that came late, or of a claim that was taken back. */
export function tellGhost(
  store: LeaseEvents['ghost_refused']['store'],
  reason: LeaseEvents['ghost_refused']['reason'],
): void {
  if (events.ghost_refused.hasSubscribers) events.ghost_refused.publish({ store, reason })
}
