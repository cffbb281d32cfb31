import { LeaseError } from '../../contract/errors.ts'
import { events } from '../../contract/events.ts'
import { List } from '../../contract/list.ts'
import { storeError } from '../../contract/request.ts'
import type { NodeRecord } from '../../contract/store.ts'
import type { Clock } from '../../contract/time.ts'
import { FlightTimer } from '../wire/timeouts.ts'
import type { Answer, Member } from './member.ts'

/**
 * Additional milliseconds for the first requests to a node, which have to connect. Once one has failed, the next ones have
 * the timeout alone: a claim waits for every node if none wins, and keeps its votes meanwhile.
 */
const TO_CONNECT = 1_000

/** Milliseconds between probes of an unresponsive node. Other requests to it fail at once. */
export const PROBE_INTERVAL = 100

/**
 * The largest number of withdrawals in flight to a node that does not answer. They are sent because it may still carry out
 * earlier requests.
 */
const MOST_OWED = 1_000

export interface AskOptions {
  /** Send the request even if the node does not respond. @default false */
  readonly owed?: boolean
}

interface Waiting {
  readonly sent: number
  readonly limit: number
  giveUp(): void
}

/** A member, its state, and its timeout. Unresponsiveness is tracked per node, not per request. */
export class Node {
  readonly member: Member
  /** Resolves when the node first answers or fails. */
  readonly known: Promise<void>
  #resolveKnown: () => void
  readonly #clock: Clock
  readonly #timeout: number
  /** Has the node answered at least once? */
  #hasServed = false
  #failure: LeaseError | undefined
  /** The error of requests that are not sent because of the last failure. */
  #refused: LeaseError | undefined
  #probeAt = 0
  #owed = 0
  readonly #waiting = new List<Waiting>()
  readonly #timer: FlightTimer
  #answeredAt = Number.NEGATIVE_INFINITY
  /** When the latest request that was answered was sent. */
  #answeredUpTo = Number.NEGATIVE_INFINITY
  /** The time from which its answers count. */
  #votesAt = 0

  constructor(member: Member, clock: Clock, timeout: number) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.known = promise
    this.#resolveKnown = resolve
    this.member = member
    this.#clock = clock
    this.#timeout = timeout
    this.#timer = new FlightTimer(now => this.#check(now), clock)
  }

  get name(): string {
    return this.member.name
  }

  /** A permanent error in the configuration of the node. */
  get refusal(): LeaseError | undefined {
    const failure = this.#failure
    if (!failure || failure.retryable || this.#hasServed) return undefined
    return new LeaseError(failure.code, `${this.name}: ${failure.message}`, { cause: failure.cause })
  }

  get record(): NodeRecord {
    const { name } = this
    if (this.#failure) return { name, state: 'unavailable', reason: this.#failure.message }
    const remaining = Math.ceil(this.#votesAt - this.#clock.now())
    if (remaining > 0) return { name, state: 'quarantined', remaining, reason: quarantine(remaining) }
    return { name, state: 'serving' }
  }

  /**
   * Sends a request to the node. Rejects with a `LeaseError`: at once while the node is known to be unresponsive, otherwise
   * after the timeout. A request that is `owed` is sent in any case.
   */
  ask<Value>(put: (member: Member) => Promise<Answer<Value>>, options: AskOptions = {}): Promise<Answer<Value>> {
    const refused = this.#refused
    if (!refused || this.#mayProbe()) return this.#put(put, options)
    if (options.owed && this.#owed < MOST_OWED) this.#put(put, options).catch(() => {}) // nobody waits for its result
    return Promise.reject(refused)
  }

  #mayProbe(): boolean {
    const now = this.#clock.now()
    if (now < this.#probeAt) return false
    this.#probeAt = now + PROBE_INTERVAL
    return true
  }

  #put<Value>(put: (member: Member) => Promise<Answer<Value>>, { owed = false }: AskOptions): Promise<Answer<Value>> {
    if (owed) this.#owed += 1
    return new Promise((resolve, reject) => {
      const limit = this.#hasServed || this.#failure ? this.#timeout : this.#timeout + TO_CONNECT
      const giveUp = (): void => {
        this.#waiting.remove(entry)
        const error = new LeaseError('OUTCOME_UNKNOWN', `no answer within ${limit} ms`)
        this.#fail(error, sent)
        reject(error)
      }
      const sent = this.#clock.now()
      const entry = this.#waiting.add({ sent, limit, giveUp })
      this.#timer.watch(sent + limit)
      const land = (): void => {
        this.#waiting.remove(entry)
        if (owed) this.#owed -= 1
      }
      put(this.member).then(
        answer => {
          land()
          this.#serve(answer.votesIn, sent)
          resolve(answer)
        },
        reason => {
          land()
          const error = storeError(reason)
          if (this.member.isAnswer(error)) this.#resolveKnown()
          else this.#fail(error, sent)
          reject(error)
        },
      )
    })
  }

  /** Gives up the requests that are overdue at `now`, and returns the time when the next one becomes overdue. */
  #check(now: number): number {
    let soonest = Number.POSITIVE_INFINITY
    for (const request of this.#waiting.values()) {
      // With thousands of requests in flight, one may wait long although the node answers all the time.
      const from = this.#isOvertaken(request.sent) ? request.sent : Math.max(request.sent, this.#answeredAt)
      const due = from + request.limit
      if (due > now) soonest = Math.min(soonest, due)
      else request.giveUp()
    }
    return soonest
  }

  /**
   * Was a request answered that was sent later? Requests are answered in order, so the earlier one was lost with its
   * connection. That says nothing about the node any more.
   */
  #isOvertaken(sent: number): boolean {
    return sent < this.#answeredUpTo
  }

  #serve(votesIn: number, sent: number): void {
    const { name } = this
    this.#resolveKnown()
    const wasQuarantined = this.#votesAt > 0
    const now = this.#clock.now()
    this.#answeredAt = now
    this.#answeredUpTo = Math.max(this.#answeredUpTo, sent)
    if (votesIn > 0 && !wasQuarantined) events.node_quarantined.publish({ node: name, remaining: votesIn })
    const isBack = this.#failure !== undefined || (wasQuarantined && votesIn === 0)
    this.#failure = undefined
    this.#refused = undefined
    this.#hasServed = true
    this.#votesAt = votesIn > 0 ? now + votesIn : 0
    if (isBack && votesIn === 0) events.node_restored.publish({ node: name })
  }

  #fail(error: LeaseError, sent: number): void {
    this.#resolveKnown()
    if (error.code === 'CLOSED' || this.#isOvertaken(sent)) return
    const isNew = this.#failure === undefined
    this.#failure = error
    this.#refused = error.code === 'OUTCOME_UNKNOWN' ? new LeaseError('STORE_UNAVAILABLE', error.message) : error
    if (!isNew) return
    this.#probeAt = this.#clock.now() + PROBE_INTERVAL
    events.node_failed.publish({ node: this.name, error })
  }
}

/** Explains why the answers of a node do not count. */
export function quarantine(votesIn: number): string {
  return `it may have forgotten leases, and votes in ${Math.ceil(votesIn / 1_000)} s`
}
