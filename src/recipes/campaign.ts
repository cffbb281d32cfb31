import { checkDuration, checkKeys, checkName, invalid } from '../contract/check.ts'
import { LeaseError } from '../contract/errors.ts'
import { events } from '../contract/events.ts'
import type { Lease } from '../contract/lease.ts'
import { backoff } from '../contract/request.ts'
import { type LeaseOptions, leaseKeys } from '../core/options.ts'
import type { Host } from './host.ts'
import { sleep } from './interruptible.ts'

/** How a name is led. `note` is the value that the leader publishes until it proclaims another one. Everybody sees it. */
export interface CampaignOptions extends LeaseOptions {
  /**
   * Milliseconds until the candidate tries again after the store failed, or after the work of an election returned. It
   * doubles with each failure in a row, and is then random between half of it and all of it. @default 1,000
   */
  readonly pause?: number | undefined
  /** Milliseconds up to which `pause` doubles. A longer term or wait resets it. @default 30,000, or `pause` if longer */
  readonly longestPause?: number | undefined
}

/** A candidate waits for as long as another leads. */
const UNLIMITED = { wait: Number.POSITIVE_INFINITY, maxWaiters: Number.POSITIVE_INFINITY }

const campaignKeys: readonly string[] = [...leaseKeys, 'pause', 'longestPause']

/** Throws `INVALID_ARGUMENT`. The options of the lease are checked when it is acquired. */
export function checkCampaign(verb: string, name: string, options: CampaignOptions, more: readonly string[]): void {
  checkName(name)
  checkKeys(options, new Set([...campaignKeys, ...more]), verb)
  const { pause, longestPause } = pausesOf(options)
  checkDuration(pause, 'pause')
  checkDuration(longestPause, 'longestPause')
  if (longestPause < pause)
    throw invalid(`longestPause (${longestPause} ms) is shorter than pause (${pause} ms): make it at least as long`)
}

function pausesOf({ pause = 1_000, longestPause }: CampaignOptions): { pause: number; longestPause: number } {
  return { pause, longestPause: longestPause ?? Math.max(pause, 30_000) }
}

/** Leads a name for one candidate, one term after the other. */
export class Campaign {
  readonly #host: Host
  readonly #name: string
  readonly #options: LeaseOptions
  readonly #pause: number
  readonly #longestPause: number
  readonly #stop: AbortSignal
  #failures = 0
  /** Milliseconds to wait before the next term. */
  #delay = 0

  /** `stop` ends the campaign, and the term in progress. */
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
   * Acquires the name and runs `body`; `resign` aborts the signal of its lease. True if another term may follow. Emits
   * an event for an error that a retry may fix, and delays the next term. Throws any other error.
   */
  async term(body: (lease: Lease, resign: () => void) => unknown): Promise<boolean> {
    await sleep(this.#host, this.#delay, this.#stop)
    if (this.#stop.aborted) return false
    this.#delay = 0
    const ending = new AbortController()
    const stop = (): void => ending.abort(this.#stop.reason)
    this.#stop.addEventListener('abort', stop)
    const { locks, clock } = this.#host
    const started = clock.now()
    let began: number | undefined
    const work = async (lease: Lease): Promise<void> => {
      began = clock.now()
      if (!lease.signal.aborted) await body(lease, () => this.#resign(ending))
      if (lease.remaining === 0 && !lease.signal.aborted) this.delayNext() // the body released the lease, so it resigned
    }
    try {
      const options = { ...this.#options, ...UNLIMITED, signal: ending.signal }
      await locks.using(this.#name, options, work)
      this.#failures = 0
    } catch (error) {
      if (clock.now() - started >= this.#longestPause) this.#failures = 0 // it has led or waited in between
      if (!ending.signal.aborted || error !== ending.signal.reason) this.#onFailure(error, began)
    } finally {
      this.#stop.removeEventListener('abort', stop)
    }
    return !this.#stop.aborted
  }

  /** Delays the next term: another candidate may lead, or the work seems to be done. */
  delayNext(): void {
    this.#delay = Math.max(this.#delay, this.#pause)
  }

  #resign(ending: AbortController): void {
    ending.abort(
      new LeaseError('CLOSED', `the leader of ${JSON.stringify(this.#name)} resigned`, { leaseName: this.#name }),
    )
    this.delayNext()
  }

  #onFailure(error: unknown, began: number | undefined): void {
    const isLease = LeaseError.is(error)
    const isOver =
      isLease && error.leaseName === this.#name && (error.code === 'LEASE_LOST' || error.code === 'MAX_HOLD')
    if (began !== undefined && isOver) return // reported by the signal of the lease and by the event lease_lost
    if (began === undefined ? !(isLease && error.retryable) : this.#stop.aborted) throw error
    const { random } = this.#host
    this.#failures += 1
    const failures = this.#failures
    const pause = backoff(failures, random, [this.#pause, this.#longestPause])
    const delay = Math.max(pause, (isLease && error.retryAfter) || 0)
    this.#delay = delay
    const name = this.#name
    events.leadership_delayed.publish({ name, error, failures, delay })
  }
}
