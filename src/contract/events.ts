import { channel } from 'node:diagnostics_channel'
import { invalid } from './check.ts'
import type { LeaseEvents } from './lease-events.ts'

/** Emits one kind of event. */
interface Emitter<Message> {
  readonly hasSubscribers: boolean
  publish(message: Message): void
}

// An object and not an array, so that TypeScript finds a missing name.
const NAMES: { readonly [Name in keyof LeaseEvents]: true } = {
  acquire_began: true,
  lease_acquired: true,
  not_acquired: true,
  lease_busy: true,
  self_wait: true,
  heartbeat: true,
  heartbeat_failed: true,
  ttl_too_short: true,
  lease_lost: true,
  lease_broken: true,
  release_began: true,
  lease_released: true,
  leadership_delayed: true,
  term_ended: true,
  release_failed: true,
  request_failed: true,
  stale_request_refused: true,
  batch_sent: true,
  votes_counted: true,
  node_failed: true,
  node_quarantined: true,
  node_restored: true,
  warning: true,
}

/** The emitters of all events. */
type Emitters = { readonly [Name in keyof LeaseEvents]: Emitter<LeaseEvents[Name]> }

/**
 * If an event is frequent or its message has a lease, check `hasSubscribers` before you build the message. Then an
 * event without subscribers costs a few nanoseconds.
 */
export const events: Emitters = Object.fromEntries(
  Object.keys(NAMES).map(name => [name, channel(`holdfast:${name}`)]),
) as never

/**
 * Calls `listener` synchronously for each event `name` of any `Locks` in this process. Returns a function that
 * unsubscribes. If the listener throws, that is an uncaught exception, as for every diagnostics channel.
 */
export function subscribe<Name extends keyof LeaseEvents>(
  name: Name,
  listener: (event: LeaseEvents[Name]) => void,
): () => void {
  if (!Object.hasOwn(events, name))
    throw invalid(`there is no event ${JSON.stringify(name)}, only ${Object.keys(events).join(', ')}`)
  if (typeof listener !== 'function')
    throw invalid(`the listener of ${name} must be a function, not ${typeof listener}`)
  const receive = (message: unknown): void => listener(message as LeaseEvents[Name])
  const target = channel(`holdfast:${name}`)
  target.subscribe(receive)
  return () => void target.unsubscribe(receive)
}
