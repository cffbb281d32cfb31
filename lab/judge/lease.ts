import { NEVER } from './acquisition.ts'
import { mayBeGranted, type Request } from './request.ts'
import { type Fault, isDuring, type Trace } from './trace.ts'

/** Milliseconds by which a store may overstate a ttl (R6). */
const OVERSTATED = 2

/** Milliseconds after which an unanswered request has no effect any more, and its lease has ended. */
const LATEST = 30_000

/** A lease as far as the answers of the store show it. Times are milliseconds. */
export class Lease {
  /** All requests of its claim, in the order in which they were sent. */
  readonly requests: readonly Request[]
  /** Those that were answered by this lease. Empty: an acquire without an answer may have been granted. */
  readonly held: readonly Request[]
  readonly #mayEnd: readonly Fault[]
  readonly #endsWithConnection: boolean

  constructor(requests: readonly Request[], held: readonly Request[], { faults, run, excuses }: Trace) {
    this.requests = requests
    this.held = held
    const isOwn = ({ client }: Fault): boolean => client === undefined || client === this.client
    this.#mayEnd = faults.filter(fault => excuses && (fault.changesClock || fault.forgets) && isOwn(fault))
    this.#endsWithConnection = run.endsWithConnection === true
  }

  get claim(): string {
    return this.requests[0]?.asked.claim ?? ''
  }

  get client(): number {
    return this.requests[0]?.asked.client ?? 0
  }

  get token(): bigint {
    return BigInt(this.held[0]?.answer?.token ?? 0)
  }

  get slots(): readonly number[] {
    return this.held[0]?.answer?.slots ?? []
  }

  get limit(): number {
    return this.#terms?.limit ?? 1
  }

  get units(): number {
    return this.#terms?.units ?? 1
  }

  /** The first acquire of the claim fixes them. */
  get #terms(): Request['asked'] | undefined {
    return this.requests.find(({ asked }) => asked.verb === 'acquire')?.asked
  }

  /** An earlier acquire without an answer may be the one that was granted. */
  get grantedAfter(): number {
    return this.requests.find(each => mayBeGranted(each) || this.held.includes(each))?.sent ?? NEVER
  }

  get grantedBefore(): number {
    return Math.min(...this.held.map(({ received }) => received))
  }

  /** It holds until this time at least, unless `except` ended it. */
  earliestEnd(except?: Request): number {
    const seen = Math.max(...this.held.map(({ sent }) => sent))
    const ttls = this.held.map(({ sent, answer }) => sent + (answer?.ttl ?? 0) - OVERSTATED)
    const granted = this.held[0]?.sent ?? NEVER
    const released = this.requests.find(each => {
      return each.asked.verb === 'release' && each !== except && each.received > granted
    })
    const faults = this.#mayEnd.filter(fault => isDuring(fault, seen, NEVER)).map(({ at }) => at)
    const ends = this.#endsWithConnection ? seen : Math.max(...ttls)
    return Math.max(seen, Math.min(ends, released?.sent ?? NEVER, ...faults))
  }

  /** It has certainly ended by this time. */
  get latestEnd(): number {
    const mayHold = (each: Request): boolean => {
      return this.held.includes(each) || (each.is === undefined && each.asked.verb !== 'release')
    }
    const last = this.requests.findLast(mayHold)?.sent ?? 0
    const answered = Math.max(...this.held.map(({ received }) => received))
    // An acquire that is under way may be carried out after a release that ended something (R4).
    const isOpen = this.requests.some(mayBeGranted)
    const said = this.requests.find(each => {
      const isEnd = each.is === 'gone' || each.is === 'busy' || (each.is === 'released' && !isOpen)
      return isEnd && each.sent > Math.max(last, answered)
    })
    return Math.min(said?.received ?? NEVER, last + LATEST)
  }
}
