import { NEVER } from './acquisition.ts'
import type { Request } from './request.ts'
import { type Fault, isDuring } from './trace.ts'

/** Milliseconds by which a store may overstate a ttl (R6). */
const OVERSTATED = 2

/** Milliseconds after which a request, or a lease that is not renewed, is over, however late the servers are. */
const LATEST = 30_000

/** A lease as far as the answers of the store show it. Times are milliseconds. */
export class Lease {
  /** All requests of its claim, in the order in which they were sent. */
  readonly requests: readonly Request[]
  /** Those that were answered by this lease. None: the claim may have been granted without an answer. */
  readonly held: readonly Request[]
  readonly #mayEnd: readonly Fault[]
  readonly #endsWithConnection: boolean

  constructor(requests: readonly Request[], held: readonly Request[], faults: readonly Fault[], ends: boolean) {
    this.requests = requests
    this.held = held
    this.#mayEnd = faults.filter(({ client }) => client === undefined || client === this.client)
    this.#endsWithConnection = ends
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

  /** It was granted after this time. An earlier request than the one that was answered may have been granted. */
  get from(): number {
    const may = ({ asked, is }: Request): boolean => asked.verb === 'acquire' && is === undefined
    return this.requests.find(each => may(each) || this.held.includes(each))?.sent ?? NEVER
  }

  /** It was granted before this time. */
  get by(): number {
    return Math.min(...this.held.map(({ received }) => received))
  }

  /** It holds until this time at least, unless `except` ended it. */
  end(except?: Request): number {
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
  get over(): number {
    const mayHold = (each: Request): boolean => {
      return this.held.includes(each) || (each.is === undefined && each.asked.verb !== 'release')
    }
    const last = this.requests.findLast(mayHold)?.sent ?? 0
    const answered = Math.max(...this.held.map(({ received }) => received))
    // An acquire that is under way may be carried out after a release that ended something (R4).
    const isOpen = this.requests.some(({ asked, is }) => asked.verb === 'acquire' && is === undefined)
    const said = this.requests.find(each => {
      const isEnd = each.is === 'gone' || each.is === 'busy' || (each.is === 'released' && !isOpen)
      return isEnd && each.sent > Math.max(last, answered)
    })
    return Math.min(said?.received ?? NEVER, last + LATEST)
  }
}
