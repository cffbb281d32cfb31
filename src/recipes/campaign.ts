import { checkDuration, checkKeys, checkName, invalid } from '../contract/check.ts'
import { LeaseError } from '../contract/errors.ts'
import { events } from '../contract/events.ts'
import type { Lease } from '../contract/lease.ts'
import { type LeaseOptions, leaseKeys } from '../core/options.ts'
import type { Host } from './host.ts'
import { rest } from './rest.ts'

/** How a name is led. Its `note` is the value that the leader publishes, until it proclaims another: everybody sees it. */
export interface CampaignOptions extends LeaseOptions {
  /**
   * Milliseconds until the name is waited for again after the store failed, or work of an election ended by itself. It
   * doubles with each failure in a row, and is random between half of that and all of it. @default 1,000
   */
  readonly pause?: number | undefined
  /** Milliseconds up to which `pause` doubles. @default 30,000, or `pause` if that is longer */
  readonly longestPause?: number | undefined
}

const campaignKeys: readonly string[] = [...leaseKeys, 'pause', 'longestPause']

/** Throws `INVALID_ARGUMENT`; what the lease itself is made of is checked when it is asked for. */
export function checkCampaign(verb: string, name: string, options: CampaignOptions, more: readonly string[]): void {
  checkName(name)
  checkKeys(options, new Set([...campaignKeys, ...more]), verb)
  const { pause, longestPause } = pausesOf(options)
  checkDuration(pause, 'pause')
  checkDuration(longestPause, 'longestPause')
  if (longestPause < pause) throw invalid(`longestPause (${longestPause} ms) is shorter than pause (${pause} ms)`)
}

function pausesOf({ pause = 1_000, longestPause }: CampaignOptions): { pause: number; longestPause: number } {
  return { pause, longestPause: longestPause ?? Math.max(pause, 30_000) }
}

/** The terms of one candidate, one after the other. */
export class Campaign {
  readonly #host: Host
  readonly #name: string
  readonly #options: LeaseOptions
  readonly #pause: number
  readonly #longestPause: number
  readonly #stop: AbortSignal
  #failures = 0
  /** Milliseconds to let pass before the next term. */
  #rest = 0

  /** Ends, the term under way with it, when `stop` aborts. */
  constructor(host: Host, name: string, options: CampaignOptions, stop: AbortSignal) {
    const { pause: _, longestPause: __, ...lease } = options
    const { pause, longestPause } = pausesOf(options)
    this.#host = host
    this.#name = name
    this.#options = lease
    this.#pause = pause
    this.#longestPause = longestPause
    this.#stop = stop
  }

  /**
   * Waits for the name, and has it until `body` has ended; `leave` tells the body to end. True if there may be another
   * term after it. What may go better next time is told by an event, and the next term waits; all else is thrown.
   */
  async term(body: (lease: Lease, leave: () => void) => unknown): Promise<boolean> {
    await rest(this.#host, this.#rest, this.#stop)
    if (this.#stop.aborted) return false
    this.#rest = 0
    const ending = new AbortController()
    const stop = (): void => ending.abort(this.#stop.reason)
    this.#stop.addEventListener('abort', stop)
    const { locks, clock } = this.#host
    let began: number | undefined
    const work = async (lease: Lease): Promise<void> => {
      began = clock.now()
      if (!lease.signal.aborted) await body(lease, () => this.#leave(ending))
      if (lease.remaining === 0 && !lease.signal.aborted) this.yieldNext() // released by the body, which thereby resigned
    }
    try {
      const options = { ...this.#options, wait: Number.POSITIVE_INFINITY, signal: ending.signal }
      await locks.using(this.#name, work, options)
      this.#failures = 0
    } catch (error) {
      if (!ending.signal.aborted || error !== ending.signal.reason) this.#bear(error, began)
    } finally {
      this.#stop.removeEventListener('abort', stop)
    }
    return !this.#stop.aborted
  }

  /** The next term waits: for others to have their turn, or since the work seems to be done. */
  yieldNext(): void {
    this.#rest = Math.max(this.#rest, this.#pause)
  }

  #leave(ending: AbortController): void {
    ending.abort(
      new LeaseError('CLOSED', `the leader of ${JSON.stringify(this.#name)} resigned`, { lease: this.#name }),
    )
    this.yieldNext()
  }

  #bear(error: unknown, began: number | undefined): void {
    const isLease = LeaseError.is(error)
    const isOver = isLease && error.lease === this.#name && (error.code === 'LEASE_LOST' || error.code === 'MAX_HOLD')
    if (began !== undefined && isOver) return // told by the signal of the lease, and the event lease_lost
    if (began === undefined ? !(isLease && error.retryable) : this.#stop.aborted) throw error
    const { clock, random } = this.#host
    if (began !== undefined && clock.now() - began >= this.#longestPause) this.#failures = 0
    this.#failures += 1
    const failures = this.#failures
    const longest = Math.min(this.#pause * 2 ** (failures - 1), this.#longestPause)
    const delay = Math.max(longest * (0.5 + random() / 2), (isLease && error.retryAfter) || 0)
    this.#rest = delay
    const name = this.#name
    if (events.leadership_delayed.hasSubscribers) events.leadership_delayed.publish({ name, error, failures, delay })
  }
}
