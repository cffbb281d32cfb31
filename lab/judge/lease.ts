import { NEVER } from './acquisition.ts'
import { mayBeGranted, type Request } from './request.ts'
import { type Fault, isDuring, isJump, struck, type Trace } from './trace.ts'

/** Milliseconds by which a store may overstate a ttl (R6). */
const OVERSTATED = 2

/** Milliseconds that a request, or the end of a lease, may take without a fault, on a busy machine. */
const SLOWEST = 5_000

/** A lease as far as the answers of the store show it. Times are milliseconds. */
export class Lease {
  /** All requests of its claim, in the order in which they were sent. */
  readonly requests: readonly Request[]
  /** Those that were answered by this lease. Empty: an acquire without an answer may have been granted. */
  readonly held: readonly Request[]
  readonly claim: string
  readonly client: number
  readonly token: bigint
  readonly slots: readonly number[]
  readonly limit: number
  readonly units: number
  /** The request that was granted was sent then, or later: an earlier acquire without an answer may be it. */
  readonly grantedAfter: number
  readonly grantedBefore: number
  /** It has certainly ended by this time. */
  readonly latestEnd: number
  readonly #trace: Trace
  /** Faults that concern its client or all. */
  readonly #faults: readonly Fault[]

  constructor(requests: readonly Request[], held: readonly Request[], trace: Trace) {
    const [{ asked }] = requests as [Request]
    const [first] = held
    this.requests = requests
    this.held = held
    this.claim = asked.claim
    this.client = asked.client
    this.token = BigInt(first?.answer?.token ?? 0)
    this.slots = first?.answer?.slots ?? []
    // The first acquire of the claim fixes them.
    const terms = requests.find(each => each.asked.verb === 'acquire')?.asked
    this.limit = terms?.limit ?? 1
    this.units = terms?.units ?? 1
    // Told `busy` before all answers of this lease, the claim did not hold yet.
    const shown = Math.min(...held.map(({ sent }) => sent))
    const refused = requests.filter(({ is, received }) => is === 'busy' && received <= shown && held.length > 0)
    this.grantedAfter = Math.max(
      requests.find(each => mayBeGranted(each) || (isAcquire(each) && held.includes(each)))?.sent ?? NEVER,
      ...refused.map(({ sent }) => sent),
    )
    this.grantedBefore = Math.min(...held.map(({ received }) => received))
    this.#trace = trace
    this.#faults = trace.faults.filter(fault => (struck(fault) ?? this.client) === this.client)
    this.latestEnd = this.#latestEnd()
  }

  /** It holds until this time at least, unless `except` ended it. */
  earliestEnd(except?: Request): number {
    const seen = Math.max(...this.held.map(({ sent }) => sent))
    const released = this.requests.find(each => {
      return each.asked.verb === 'release' && each !== except && each.received > (this.held[0]?.sent ?? NEVER)
    })
    const jumps = this.#trace.faults.filter(fault => isJump(fault, this.client))
    const faults = [...this.#mayEnd, ...jumps].filter(fault => isDuring(fault, seen, NEVER)).map(({ at }) => at)
    const ends = this.#trace.run.endsWithConnection ? seen : Math.max(...this.held.map(each => this.#endBy(each)))
    return Math.max(seen, Math.min(ends, released?.sent ?? NEVER, ...faults))
  }

  /** Might what the store said in answer to this request have been forgotten by this time? */
  isForgotten({ sent }: Request, by: number): boolean {
    return this.#mayEnd.some(fault => isDuring(fault, sent, by))
  }

  get #mayEnd(): readonly Fault[] {
    return this.#trace.excuses ? this.#faults.filter(({ changesClock, forgets }) => changesClock || forgets) : []
  }

  /** When the lease ends by this answer. A renewal that was carried out later, so after this was sent, may have shortened it. */
  #endBy(held: Request): number {
    const renewals = this.requests.filter(each => {
      return each !== held && each.asked.verb === 'renew' && each.is !== 'gone' && each.received > held.sent
    })
    const shortened = renewals.map(({ asked, sent }) => Math.max(sent, held.sent) + (asked.ttl ?? 0))
    return Math.min(held.sent + (held.answer?.ttl ?? 0), ...shortened) - OVERSTATED
  }

  #latestEnd(): number {
    const may = this.requests.filter(each => {
      return this.held.includes(each) || (each.is === undefined && each.asked.verb !== 'release')
    })
    const last = Math.max(...may.map(({ sent, received }) => (received < NEVER ? received : this.#arrives(sent))))
    const ttl = Math.max(...may.map(({ asked, answer }) => Math.max(asked.ttl ?? 0, answer?.ttl ?? 0)))
    const over = last + ttl + this.#trace.run.bound.election + SLOWEST
    const said = this.requests.find(({ asked, is, sent }) => {
      // An acquire without an answer may arrive after everything but a release that found nothing (R4).
      const isEnd = this.held.length > 0 ? is !== undefined && is !== 'held' : asked.verb === 'release' && is === 'gone'
      return isEnd && may.every(each => (each.received < NEVER ? each.received : each.sent) < sent)
    })
    return said && !this.isForgotten(said, over) ? said.received : over
  }

  /** When a request arrives at the latest. What a fault held back arrives after it. */
  #arrives(sent: number): number {
    let time = sent + SLOWEST
    for (const { at, until } of this.#faults) if (at <= time && until >= sent) time = Math.max(time, until + SLOWEST)
    return time
  }
}

function isAcquire({ asked }: Request): boolean {
  return asked.verb === 'acquire'
}
