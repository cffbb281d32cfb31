import { invalid } from '../../contract/check.ts'
import { type Environment, systemEnvironment } from '../../contract/environment.ts'
import { LeaseError } from '../../contract/errors.ts'
import { pause } from '../../contract/request.ts'
import type {
  BreakParameters,
  Busy,
  Claim,
  ClaimKey,
  Grant,
  Guarantees,
  LeaseRecord,
  NodeRecord,
  Query,
  Store,
  Wake,
} from '../../contract/store.ts'
import { DRIFT, requestLimit } from '../../contract/time.ts'
import { warn } from '../../contract/warnings.ts'
import { closed } from '../wire/failure.ts'
import { annotate } from './annotation.ts'
import { Attempt } from './attempt.ts'
import { breakLeases } from './break.ts'
import { inspect } from './inspection.ts'
import type { Member } from './member.ts'
import { PROBE_INTERVAL } from './node.ts'
import { Quorum, type Tally } from './quorum.ts'
import { renew } from './renewal.ts'

/** Milliseconds to wait after the first wake of a waiter for those of a majority. */
const WAKES_TOGETHER = 30

/** The time that a claim that does not queue may spend on retries when votes split, in node timeouts. */
const TRY_TIMEOUTS = 8

export interface QuorumOptions {
  readonly kind: string
  readonly guarantees: Guarantees
  /** Milliseconds after which a node counts as unresponsive. */
  readonly nodeTimeout: number
  /** The longest ttl in milliseconds. A node that has lost its votes votes again after this time. */
  readonly maxTtl: number
  /** The share of the ttl that is subtracted because clocks run at different speeds. */
  readonly drift: number
  readonly environment?: Environment | undefined
}

/** A store of independent members. A majority decides. */
export class QuorumStore implements Store {
  readonly kind: string
  readonly guarantees: Guarantees
  /** This exists only if all members wake waiters. */
  readonly watch?: NonNullable<Store['watch']>
  readonly #quorum: Quorum
  readonly #options: QuorumOptions
  readonly #environment: Environment
  /** The lowest number that the next attempt may have. */
  #least = 0
  #attempt: number | undefined
  /** The latest renewal of each claim, while it is in flight. */
  readonly #renewals = new Map<string, object>()
  #isClosed = false

  constructor(members: readonly Member[], options: QuorumOptions) {
    this.kind = options.kind
    this.guarantees = options.guarantees
    this.#options = options
    this.#environment = options.environment ?? systemEnvironment()
    this.#quorum = new Quorum(members, options.nodeTimeout, this.#environment)
    if (options.guarantees.waiting === 'pushed') this.watch = (key, wake, signal) => this.#watch(key, wake, signal)
  }

  async acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    this.#begin(signal)
    this.#checkTtl(claim.ttl)
    this.#renewals.delete(claim.id)
    const { clock } = this.#environment
    const started = clock.now()
    const limit = requestLimit(claim.ttl, this.guarantees.acquireShare)
    const tryLimit = Math.min(limit, TRY_TIMEOUTS * this.#options.nodeTimeout)
    for (;;) {
      const attempt = new Attempt(this.#quorum, claim, this.#nextAttempt())
      const result = await attempt.run()
      // A node that has not connected yet may be one that must never vote, such as a server that is listed twice.
      if (result.kind === 'unavailable') await this.#quorum.known()
      const elapsed = clock.now() - started
      const { refusal } = this.#quorum
      if (result.kind === 'won' && elapsed <= limit && !refusal && !signal.aborted)
        return { held: true, token: BigInt(result.token), ttl: this.#granted(claim.ttl) }
      // An aborted claim is released, which wakes the next waiter.
      if (result.kind === 'won' && !signal.aborted) await attempt.concede()
      signal.throwIfAborted()
      if (refusal) throw refusal
      if (result.kind === 'unavailable') throw this.#unavailable(result.error)
      if (result.kind === 'won') throw tooLong(elapsed, limit)
      const { busy } = result
      // A claim that does not queue tries again here, so that one of several simultaneous claims succeeds.
      if (result.kind === 'busy' || claim.queue || elapsed + busy.retryAfter >= tryLimit) return busy
      await pause(clock, busy.retryAfter)
      this.#begin(signal)
    }
  }

  async renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    this.#begin(signal)
    this.#checkTtl(claim.ttl)
    const own = {}
    this.#renewals.set(claim.id, own)
    try {
      const token = await renew(this.#quorum, claim, this.#nextAttempt())
      if (token !== undefined) return { held: true, token: BigInt(token), ttl: this.#granted(claim.ttl) }
      // A later request of the claim may have restored the votes that this one did not find.
      signal.throwIfAborted()
      if (this.#renewals.get(claim.id) !== own)
        throw new LeaseError('OUTCOME_UNKNOWN', 'it was overtaken by a later renewal')
    } finally {
      if (this.#renewals.get(claim.id) === own) this.#renewals.delete(claim.id)
    }
    // Votes that a minority still has for the claim would only block others.
    for (const node of this.#quorum.nodes) void this.#quorum.tell(node, member => member.release(claim))
    return undefined
  }

  async annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    this.#begin(signal)
    return annotate(this.#quorum, claim, this.#nextAttempt())
  }

  async release(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    this.#begin(signal)
    const { majority, size } = this.#quorum
    const judge = (tally: Tally<boolean>): { readonly answer: 'released' | 'gone' } | undefined => {
      const found = tally.count(wasThere => wasThere)
      if (found >= majority) return { answer: 'released' }
      if (tally.counted.length - found > size - majority) return { answer: 'gone' }
      if (tally.pending > 0) return undefined
      if (tally.failed.length > 0) throw this.#quorum.unavailable(tally)
      // Quarantined nodes do not count in a majority. But now no node holds the lease.
      return { answer: found > 0 || tally.quarantined.some(({ value }) => value) ? 'released' : 'gone' }
    }
    return (await this.#quorum.poll(member => member.release(key), judge, { owed: true })).answer
  }

  async #watch(key: ClaimKey, wake: Wake, signal: AbortSignal): Promise<void> {
    this.#begin(signal)
    const { nodes, majority, size } = this.#quorum
    const notified = new Set<Member>()
    const hear = (member: Member, delay: number): void => {
      notified.add(member)
      const isMajority = notified.size >= majority
      if (isMajority) notified.clear()
      wake(isMajority ? delay : Math.max(delay, WAKES_TOGETHER))
    }
    // Subscriptions have their own connection, whose failures say nothing about the node.
    await new Promise<void>((resolve, reject) => {
      let armed = 0
      let failed = 0
      const arm = (): void => {
        armed += 1
        if (armed === majority) resolve()
      }
      const fail = (error: unknown): void => {
        failed += 1
        if (failed > size - majority) reject(error)
      }
      for (const { member } of nodes) member.watch(key, (delay = 0) => hear(member, delay), signal).then(arm, fail)
    })
  }

  async *inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord | NodeRecord> {
    this.#begin(signal)
    yield* inspect(this.#quorum, query, () => this.#begin(signal))
  }

  async break(name: string, { token }: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    this.#begin(signal)
    return breakLeases(this.#quorum, name, token, () => this.#begin(signal))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    await this.#quorum.settled()
    for (const { member } of this.#quorum.nodes) member.close()
  }

  #begin(signal: AbortSignal): void {
    if (this.#isClosed) throw closed()
    signal.throwIfAborted()
  }

  #checkTtl(ttl: number): void {
    const { maxTtl } = this.#options
    if (ttl > maxTtl)
      throw invalid(
        `the ttl of ${ttl} ms is longer than maxTtl of the store, ${maxTtl} ms: request less, or raise maxTtl ` +
          'wherever these names are used. A node that may have forgotten leases grants none for maxTtl',
      )
  }

  /**
   * The number of the next attempt, renewal or note, in microseconds. It is the lowest token of the attempt, so that nodes that
   * missed earlier grants still vote with the same token. No two attempts of a claim have the same number, whatever the clock
   * does: an attempt that is given up takes back its votes and those of earlier attempts. Claims of one turn of the event
   * loop share a number, which a joint request then contains once.
   */
  #nextAttempt(): number {
    if (this.#attempt === undefined) {
      this.#attempt = Math.max(this.#least, Math.floor(this.#environment.clock.wall() * 1_000))
      this.#least = this.#attempt + 1
      process.nextTick(() => {
        this.#attempt = undefined
      })
    }
    return this.#attempt
  }

  /** Returns the error, and warns if quarantines are the cause: they can take as long as maxTtl. */
  #unavailable(error: LeaseError): LeaseError {
    const { retryAfter } = error
    if (retryAfter !== undefined && retryAfter > PROBE_INTERVAL)
      warn(
        'HOLDFAST_QUARANTINE',
        `${this.kind} grants no lease for another ${Math.ceil(retryAfter / 1_000)} s: a majority of the servers was started, ` +
          'or lost its data, less than maxTtl ago and may have forgotten leases. For throw-away tests set trustRestarted.',
        this.kind,
      )
    return error
  }

  /** The length of a grant. The core subtracts its `margin` from it. What remains is the ttl without the drift and 2 ms. */
  #granted(ttl: number): number {
    return ttl * ((1 - this.#options.drift) / (1 - DRIFT))
  }
}

function tooLong(elapsed: number, limit: number): LeaseError {
  const message = `the votes took ${Math.round(elapsed)} ms: more than ${Math.round(limit)} ms leave too little of the ttl`
  return new LeaseError('STORE_UNAVAILABLE', message)
}
