import { type Emitter, type Emitters, events } from '../../contract/events.ts'
import type { Lease } from '../../contract/lease.ts'

/** What the events of the parts need of the permit. */
interface Whole {
  readonly handle: Lease
  /** Warns from now on if the program loses the handle. */
  watchHandle(): void
}

const silent = { hasSubscribers: false, publish: (): void => {} }

/** The events of the parts of one call. Each emitter is made when it is needed: most calls emit nothing. */
class PartEmitters implements Partial<Emitters> {
  readonly #name: string
  readonly #of: PartEvents
  readonly self_wait: typeof silent = silent
  readonly release_began: typeof silent = silent
  readonly lease_released: typeof silent = silent
  /** A permit is told by its leases. */
  readonly lease_lost: typeof silent = silent

  constructor(name: string, of: PartEvents) {
    this.#name = name
    this.#of = of
  }

  get lease_busy(): Emitters['lease_busy'] {
    const name = this.#name
    const { hasSubscribers } = events.lease_busy
    return { hasSubscribers, publish: busy => events.lease_busy.publish({ ...busy, name }) }
  }

  get request_failed(): Emitters['request_failed'] {
    const name = this.#name
    return { hasSubscribers: true, publish: failure => events.request_failed.publish({ ...failure, name }) }
  }

  get release_failed(): Emitters['release_failed'] {
    const name = this.#name
    const lease = this.#handle
    return {
      hasSubscribers: true,
      publish: failure => events.release_failed.publish({ ...failure, name, lease: failure.lease && lease }),
    }
  }

  get heartbeat(): Emitters['heartbeat'] {
    return {
      hasSubscribers: true,
      publish: beat => {
        this.#of.permit?.watchHandle()
        const lease = events.heartbeat.hasSubscribers && this.#handle
        if (lease) events.heartbeat.publish({ ...beat, lease })
      },
    }
  }

  get heartbeat_failed(): Emitters['heartbeat_failed'] {
    return this.#ofPermit(events.heartbeat_failed)
  }

  /** Of the gate nobody has a lease. */
  get ttl_too_short(): Emitters['ttl_too_short'] {
    return this.#ofPermit(events.ttl_too_short)
  }

  get #handle(): Lease | undefined {
    return this.#of.permit?.handle
  }

  #ofPermit<Message extends { readonly lease: Lease }>(emitter: Emitter<Message>): Emitter<Message> {
    const lease = emitter.hasSubscribers ? this.#handle : undefined
    return { hasSubscribers: lease !== undefined, publish: event => lease && emitter.publish({ ...event, lease }) }
  }
}

// All other events are those of the library.
Object.setPrototypeOf(PartEmitters.prototype, events)

/**
 * The events of the gate and the slots of one call, as events of the shared name. So a permit looks like one lease: the
 * permit emits its own beginning and end, and nobody hears of slots that were not handed out.
 */
export class PartEvents {
  /** Once the permit is made of its slots. */
  permit: Whole | undefined
  readonly emitters: Emitters

  constructor(name: string) {
    this.emitters = new PartEmitters(name, this) as unknown as Emitters
  }
}
