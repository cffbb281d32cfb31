import { type Emitter, type Emitters, events } from '../../contract/events.ts'
import type { Lease } from '../../contract/lease.ts'

const silent = { hasSubscribers: false, publish: (): void => {} }

/**
 * The events of the gate and the slots of one call, as events of the shared name. So a permit looks like one lease: the
 * permit emits its own beginning and end, and slots that were not handed out emit nothing. Each emitter is made when it
 * is needed, because most calls emit nothing.
 */
export class PartEvents {
  /** Set once the permit is made of its slots. */
  permit: { readonly handle: Lease } | undefined
  readonly self_wait: typeof silent = silent
  readonly release_began: typeof silent = silent
  readonly lease_released: typeof silent = silent
  /** The leases notify the permit themselves. */
  readonly lease_lost: typeof silent = silent
  readonly #name: string

  constructor(name: string) {
    this.#name = name
  }

  get emitters(): Emitters {
    return this as unknown as Emitters
  }

  get lease_busy(): Emitters['lease_busy'] {
    return this.#named(events.lease_busy)
  }

  get request_failed(): Emitters['request_failed'] {
    return this.#named(events.request_failed)
  }

  get release_failed(): Emitters['release_failed'] {
    const { publish } = this.#named(events.release_failed)
    return {
      hasSubscribers: true,
      publish: failure => publish({ ...failure, lease: failure.lease && this.permit?.handle }),
    }
  }

  get heartbeat(): Emitters['heartbeat'] {
    return this.#ofPermit(events.heartbeat)
  }

  get heartbeat_failed(): Emitters['heartbeat_failed'] {
    return this.#ofPermit(events.heartbeat_failed)
  }

  /** Not for the gate: no caller has a lease on it. */
  get ttl_too_short(): Emitters['ttl_too_short'] {
    return this.#ofPermit(events.ttl_too_short)
  }

  #named<Message extends { readonly name: string }>(emitter: Emitter<Message>): Emitter<Message> {
    const { hasSubscribers } = emitter
    return { hasSubscribers, publish: message => emitter.publish({ ...message, name: this.#name }) }
  }

  #ofPermit<Message extends { readonly lease: Lease }>(emitter: Emitter<Message>): Emitter<Message> {
    const lease = emitter.hasSubscribers ? this.permit?.handle : undefined
    return { hasSubscribers: lease !== undefined, publish: message => lease && emitter.publish({ ...message, lease }) }
  }
}

// All other events are those of the library.
Object.setPrototypeOf(PartEvents.prototype, events)
