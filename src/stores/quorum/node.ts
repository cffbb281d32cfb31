import { LeaseError } from '../../contract/errors.ts'
import { events } from '../../contract/events.ts'
import { List } from '../../contract/list.ts'
import { storeError } from '../../contract/request.ts'
import type { NodeRecord } from '../../contract/store.ts'
import type { Clock } from '../../contract/time.ts'
import type { Answer, Member } from './member.ts'

/** Milliseconds for which the first request to a node may take longer, to connect. */
const TO_CONNECT = 1_000

/** Milliseconds between two tries of a node that did not answer: all others are spared the wait for it. */
const PROBE_INTERVAL = 100

/** Withdrawals that a node is sent although it does not answer: whatever it was told before may still be carried out. */
const MOST_OWED = 1_000

export interface AskOptions {
  /** Must it reach the node, whether that answers or not? @default false */
  readonly owed?: boolean
  /** Milliseconds of silence. @default the node's */
  readonly timeout?: number
}

interface Waiting {
  readonly sent: number
  readonly limit: number
  giveUp(): void
}

/** A member, how it does, and for how long it is waited for. */
export class Node {
  readonly member: Member
  /** Resolves when the node first answers or fails. */
  readonly known: Promise<void>
  #resolveKnown: () => void
  readonly #clock: Clock
  readonly #timeout: number
  /** Has it ever answered? */
  #hasServed = false
  #failure: LeaseError | undefined
  /** What a request is answered that is not sent because of the failure. */
  #refused: LeaseError | undefined
  #probeAt = 0
  #owed = 0
  readonly #waiting = new List<Waiting>()
  /** When it is looked for silence. */
  #lookAt = Number.POSITIVE_INFINITY
  #stopTimer: () => void = () => {}
  #answeredAt = Number.NEGATIVE_INFINITY
  /** The clock's time from which on its answers count. */
  #votesAt = 0

  constructor(member: Member, clock: Clock, timeout: number) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.known = promise
    this.#resolveKnown = resolve
    this.member = member
    this.#clock = clock
    this.#timeout = timeout
  }

  get name(): string {
    return this.member.name
  }

  /** Why it can never serve as it is set up. */
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
   * Rejects with a `LeaseError`: at once while it is known not to answer, else when its time is over. What is `owed` is
   * sent all the same.
   */
  ask<Value>(put: (member: Member) => Promise<Answer<Value>>, options: AskOptions = {}): Promise<Answer<Value>> {
    const refused = this.#refused
    if (!refused || this.#mayProbe()) return this.#put(put, options)
    if (options.owed && this.#owed < MOST_OWED) this.#put(put, options).catch(() => {}) // nobody waits for it
    return Promise.reject(refused)
  }

  #mayProbe(): boolean {
    const now = this.#clock.now()
    if (now < this.#probeAt) return false
    this.#probeAt = now + PROBE_INTERVAL
    return true
  }

  #put<Value>(put: (member: Member) => Promise<Answer<Value>>, options: AskOptions): Promise<Answer<Value>> {
    const { owed = false, timeout = this.#timeout } = options
    if (owed) this.#owed += 1
    return new Promise((resolve, reject) => {
      const limit = this.#hasServed ? timeout : timeout + TO_CONNECT
      const giveUp = (): void => {
        this.#waiting.remove(entry)
        const error = new LeaseError('OUTCOME_UNKNOWN', `no answer within ${limit} ms`)
        this.#fail(error)
        reject(error)
      }
      const entry = this.#waiting.add({ sent: this.#clock.now(), limit, giveUp })
      this.#watch(limit)
      const land = (): void => {
        this.#waiting.remove(entry)
        if (owed) this.#owed -= 1
      }
      put(this.member).then(
        answer => {
          land()
          // What the server itself did not answer tells nothing of it.
          if (answer.votesIn !== undefined) this.#serve(answer.votesIn)
          resolve(answer)
        },
        reason => {
          land()
          const error = storeError(reason)
          if (this.member.isAnswer(error)) this.#resolveKnown()
          else this.#fail(error)
          reject(error)
        },
      )
    })
  }

  /** One timer for all that is under way, set anew for what is given up sooner. */
  #watch(delay: number): void {
    const at = this.#clock.now() + delay
    if (at >= this.#lookAt) return
    this.#lookAt = at
    this.#stopTimer()
    // Answers that came while the event loop was blocked are read before they count as missing.
    const isOver = (): void => {
      this.#stopTimer = this.#clock.after(0, () => this.#lookForSilence(), true)
    }
    this.#stopTimer = this.#clock.after(delay, isOver, true)
  }

  #lookForSilence(): void {
    this.#lookAt = Number.POSITIVE_INFINITY
    const now = this.#clock.now()
    let soonest = Number.POSITIVE_INFINITY
    for (const request of this.#waiting.values()) {
      // With thousands under way one may wait long for its turn, at a node that answers all the time.
      const left = Math.max(request.sent, this.#answeredAt) + request.limit - now
      if (left > 0) soonest = Math.min(soonest, left)
      else request.giveUp()
    }
    if (soonest < Number.POSITIVE_INFINITY) this.#watch(soonest)
  }

  #serve(votesIn: number): void {
    const { name } = this
    this.#resolveKnown()
    const wasQuarantined = this.#votesAt > 0
    const now = this.#clock.now()
    this.#answeredAt = now
    if (votesIn > 0 && !wasQuarantined && events.node_quarantined.hasSubscribers)
      events.node_quarantined.publish({ node: name, remaining: votesIn })
    const isBack = this.#failure !== undefined || (wasQuarantined && votesIn === 0)
    this.#failure = undefined
    this.#refused = undefined
    this.#hasServed = true
    this.#votesAt = votesIn > 0 ? now + votesIn : 0
    if (isBack && votesIn === 0 && events.node_restored.hasSubscribers) events.node_restored.publish({ node: name })
  }

  #fail(error: LeaseError): void {
    this.#resolveKnown()
    if (error.code === 'CLOSED') return
    const isNew = this.#failure === undefined
    this.#failure = error
    this.#refused = error.code === 'OUTCOME_UNKNOWN' ? new LeaseError('STORE_UNAVAILABLE', error.message) : error
    if (!isNew) return
    this.#probeAt = this.#clock.now() + PROBE_INTERVAL
    if (events.node_failed.hasSubscribers) events.node_failed.publish({ node: this.name, error })
  }
}

/** Why the answers of a node do not count. */
export function quarantine(votesIn: number): string {
  return `it may have forgotten leases, and votes in ${Math.ceil(votesIn / 1_000)} s`
}
