import { checkWait, invalid } from '../contract/check.ts'
import { LeaseError } from '../contract/errors.ts'
import type { Lease } from '../contract/lease.ts'
import type { LeaseRecord } from '../contract/store.ts'
import type { Host } from '../core/host.ts'
import { whenAborted } from '../core/signals.ts'
import { type Work, type WorkArguments, workOf } from '../core/work.ts'
import { Campaign, type CampaignOptions, checkCampaign, checkRun, overdueError, type RunOptions } from './campaign.ts'
import { anyOf } from './interruptible.ts'
import { type ObserveOptions, observe } from './observe.ts'
import type { SafeError } from './streak.ts'

/** The options of `locks.election`. */
export interface ElectionOptions extends CampaignOptions {
  /**
   * Milliseconds for which the work may continue after its signal aborted. After that `health` reports `stuck`: this
   * process should be ended. @default 10,000
   */
  readonly grace?: number | undefined
}

/** The health of a candidate, for probes and alerts. It contains no secrets. */
export interface ElectionHealth {
  /**
   * For readiness and alerts. False while the work fails: from a failure until a term ends without one, or has led or waited
   * for `maxPause`. Also false while `stuck`, and from when the store did not answer for longer than a ttl until it
   * answers. A lease that was not renewed in time counts as no answer; one that was broken or reached `maxHold` does not.
   */
  readonly ok: boolean
  /**
   * For liveness. True: the work continued for longer than the grace after its term ended, so this process should be ended.
   * An outage of the store does not make it true.
   */
  readonly stuck: boolean
  /** `idle`: `run` was not called, or has ended. `ending`: the signal of the work aborted, and it has not returned. */
  readonly state: 'idle' | 'waiting' | 'leading' | 'ending'
  /** Whole milliseconds since the signal of the work aborted; 0 unless `ending`. */
  readonly endingFor: number
  /** Failures of the work in a row. */
  readonly failures: number
  /** Why `ok` is false: the code of the error, or `STUCK`, and a message without its text. See `onError`. */
  readonly lastError: SafeError | undefined
}

/** One name, led by one candidate at a time. */
export interface Election {
  readonly name: string
  /**
   * Runs `work` in each term in which this candidate leads. The signal of the lease aborts when the lease is lost, at
   * `resign`, and when `signal` aborts. The name is released, or acquired again, only after the work has returned.
   * Resolves when `signal` has aborted or the locks are closed, and the work has returned.
   *
   * If the work returns by itself, the name is released, and the next term begins after `pause`. If the work throws, the
   * pause doubles with each failure in a row; the first one emits the warning `HOLDFAST_TERM_FAILED`. Rejects with the last
   * error after `maxFailures`, with an error that a retry cannot fix, with an error of the work after `signal` aborted,
   * `INVALID_ARGUMENT` if it runs already, and `CLOSED`.
   */
  run(work: Work<Lease, unknown>): Promise<void>
  run(options: RunOptions | undefined, work: Work<Lease, unknown>): Promise<void>
  /**
   * Replaces the note of the leader for the rest of the term in progress. Rejects as `Lease.annotate`, and with
   * `LEASE_LOST` if this candidate does not lead. Each term begins with the `note` of the election.
   */
  proclaim(note: string): Promise<void>
  /** The current leader, with its token and its `note`. Rejects as `Locks.inspect`. */
  leader(): Promise<LeaseRecord | undefined>
  /**
   * Yields the current leader, then each change of the leader or of its note, until `signal` aborts or the locks are
   * closed. `undefined`: there is no leader. It polls the store, so a change that lasts for less than `every` may be
   * missed. Tokens rise: an earlier leader is never yielded after a later one. A store that fails is retried.
   */
  observe(options?: ObserveOptions): AsyncIterable<LeaseRecord | undefined>
  /**
   * Ends the term in progress, if there is one: aborts the signal of the work. Resolves when the work has returned and
   * the name is released. The candidate acquires the name again after `pause`. Do not await it in the work: it waits for
   * the work.
   */
  resign(): Promise<void>
  /** The health of this candidate, without a request. */
  health(): ElectionHealth
}

interface Term {
  readonly lease: Lease
  /** The time at which the signal of the work aborted. */
  endedAt: number | undefined
  readonly resign: () => void
}

export class StoreElection implements Election {
  readonly name: string
  readonly #host: Host
  readonly #options: CampaignOptions
  readonly #grace: number
  #isRunning = false
  /** The last campaign, unless it was stopped. */
  #campaign: Campaign | undefined
  #term: Term | undefined
  /** Resolves when the term that is awaited or in progress has ended. */
  #nextRelease: Promise<unknown> | undefined
  /** Resolves when the name of the last term that began is released. */
  #released: Promise<unknown> | undefined

  constructor(host: Host, name: string, options: ElectionOptions) {
    checkCampaign('election', name, options, ['grace'])
    const { grace = 10_000, ...rest } = options
    checkWait(grace, 'grace')
    this.name = name
    this.#host = host
    this.#options = rest
    this.#grace = grace
  }

  async run(...args: WorkArguments<RunOptions, Lease, unknown>): Promise<void> {
    const { options = {}, work } = workOf('run(', args)
    checkRun(options)
    this.#host.closing.throwIfAborted()
    if (this.#isRunning)
      throw invalid(`this candidate for ${JSON.stringify(this.name)} runs already: make another election`)
    const campaign = new Campaign(
      this.#host,
      this.name,
      this.#options,
      anyOf(options.signal, this.#host.closing),
      options,
    )
    this.#campaign = campaign
    this.#isRunning = true
    try {
      for (let isNext = true; isNext; ) {
        const term = campaign.term((lease, resign) => this.#lead(lease, resign, work))
        this.#nextRelease = term.catch(() => {})
        isNext = await term
      }
      this.#campaign = undefined
    } finally {
      this.#isRunning = false
    }
  }

  async proclaim(note: string): Promise<void> {
    if (this.#term) return this.#term.lease.annotate(note)
    const message = `this candidate does not lead ${JSON.stringify(this.name)} now: proclaim from the work of run()`
    throw new LeaseError('LEASE_LOST', message, { leaseName: this.name })
  }

  async leader(): Promise<LeaseRecord | undefined> {
    return (await this.#host.inspect(this.name)).holders[0]
  }

  observe(options: ObserveOptions = {}): AsyncIterable<LeaseRecord | undefined> {
    return observe(this.#host, this.name, options)
  }

  async resign(): Promise<void> {
    this.#term?.resign()
    await this.#released // also if the work has just returned by itself
  }

  health(): ElectionHealth {
    const { failures = 0, lastError } = this.#campaign ?? {}
    const before = { ok: !lastError, stuck: false }
    const errors = { endingFor: 0, failures, lastError }
    if (!this.#term) return { ...before, state: this.#isRunning ? 'waiting' : 'idle', ...errors }
    const { signal } = this.#term.lease
    if (!signal.aborted) return { ...before, state: 'leading', ...errors } // reading `aborted` may detect a loss
    const now = this.#host.clock.now()
    const endingFor = Math.round(now - (this.#term.endedAt ?? now))
    const stuck = endingFor > this.#grace
    const ignores = { code: 'STUCK', message: `the work has ignored the end of its term for ${endingFor} ms` }
    const why = stuck ? ignores : (overdueError(this.#term.lease) ?? lastError)
    return { ok: !why, stuck, state: 'ending', endingFor, failures, lastError: why }
  }

  async #lead(lease: Lease, resign: () => void, work: (lease: Lease) => unknown): Promise<void> {
    const { clock } = this.#host
    const term: Term = { lease, endedAt: undefined, resign }
    const onEnd = (): void => {
      term.endedAt = clock.now()
    }
    whenAborted(lease.signal, onEnd)
    this.#term = term
    this.#released = this.#nextRelease
    try {
      await work(lease)
    } finally {
      lease.signal.removeEventListener('abort', onEnd)
      this.#term = undefined
    }
  }
}
