import { type Emitters, events } from '../../contract/events.ts'
import type { Lease } from '../../contract/lease.ts'
import type { LossReason } from '../../contract/lease-events.ts'

/** What the events of the parts need of the permit. */
interface Whole {
  readonly handle: Lease
  /** A part of the call is lost, maybe one of its slots. */
  losePart(reason: LossReason): void
  /** Warns from now on if the program loses the handle. */
  watchHandle(): void
}

const silent = { hasSubscribers: false, publish: (): void => {} }

/**
 * The events of the gate and the slots of one call, as events of the shared name. So a permit looks like one lease: the
 * permit emits its own beginning and end, and nobody hears of slots that were not handed out.
 */
export class PartEvents {
  /** Once the permit is made of its slots. */
  permit: Whole | undefined
  readonly emitters: Emitters

  constructor(name: string) {
    const handle = (): Lease | undefined => this.permit?.handle
    this.emitters = {
      ...events,
      lease_busy: {
        get hasSubscribers() {
          return events.lease_busy.hasSubscribers
        },
        publish: busy => events.lease_busy.publish({ ...busy, name }),
      },
      request_failed: {
        hasSubscribers: true,
        publish: failure => events.request_failed.publish({ ...failure, name }),
      },
      release_failed: {
        hasSubscribers: true,
        publish: failure => events.release_failed.publish({ ...failure, name, lease: failure.lease && handle() }),
      },
      heartbeat: {
        hasSubscribers: true,
        publish: beat => {
          this.permit?.watchHandle()
          const lease = events.heartbeat.hasSubscribers && handle()
          if (lease) events.heartbeat.publish({ ...beat, lease })
        },
      },
      heartbeat_failed: {
        get hasSubscribers() {
          return events.heartbeat_failed.hasSubscribers
        },
        publish: failure => {
          const lease = handle()
          if (lease) events.heartbeat_failed.publish({ ...failure, lease })
        },
      },
      ttl_too_short: {
        // Of the gate nobody has a lease.
        get hasSubscribers() {
          return events.ttl_too_short.hasSubscribers && handle() !== undefined
        },
        publish: warning => {
          const lease = handle()
          if (lease) events.ttl_too_short.publish({ ...warning, lease })
        },
      },
      lease_lost: { hasSubscribers: true, publish: ({ reason }) => this.permit?.losePart(reason) },
      self_wait: silent,
      release_began: silent,
      lease_released: silent,
    }
  }
}
