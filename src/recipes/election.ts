import { checkKeys, checkSignal, checkWait, invalid } from '../contract/check.ts'
import { LeaseError } from '../contract/errors.ts'
import type { Lease } from '../contract/lease.ts'
import type { LeaseRecord } from '../contract/store.ts'
import { whenAborted } from '../core/signals.ts'
import { type Work, type WorkArguments, workOf } from '../core/work.ts'
import { Campaign, type CampaignOptions, checkCampaign } from './campaign.ts'
import type { Host } from './host.ts'
import { anyOf } from './interruptible.ts'
import { type ObserveOptions, observe } from './observe.ts'

export interface ElectionOptions extends CampaignOptions {
  /**
   * Milliseconds for which the work may continue after its signal aborted. After that `health` says that this process
   * should be ended. @default 10,000
   */
  readonly grace?: number | undefined
}

/** The health of a candidate, for a liveness probe. */
export interface ElectionHealth {
  /** False: the work continued for longer than the grace after its signal aborted. End this process. */
  readonly ok: boolean
  /** `idle`: `run` was not called, or has ended. `ending`: the signal of the work aborted, and it has not returned. */
  readonly state: 'idle' | 'waiting' | 'leading' | 'ending'
  /** Milliseconds since the signal of the work aborted; 0 unless `ending`. */
  readonly endingFor: number
}

/** How a candidate runs. */
export interface RunOptions {
  /** Ends the candidacy: the signal of a term aborts, and `run` resolves when its work has returned. */
  readonly signal?: AbortSignal | undefined
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
   * pause doubles with each failure (the event `leadership_delayed`). Rejects with an error that a retry cannot fix, with
   * an error of the work after `signal` aborted, `INVALID_ARGUMENT` if it runs already, and `CLOSED`.
   */
  run(work: Work<Lease, unknown>): Promise<void>
  run(options: RunOptions | undefined, work: Work<Lease, unknown>): Promise<void>
  /**
   * Publishes another value for the rest of the term in progress. Rejects as `Lease.annotate`, and with `LEASE_LOST` if
   * this candidate does not lead. Each term begins with the `note` of the election.
   */
  proclaim(value: string): Promise<void>
  /** The current leader, with its token and its published value as `note`. Rejects as `Locks.inspect`. */
  leader(): Promise<LeaseRecord | undefined>
  /**
   * Yields the current leader, then each change of the leader or of its value, until `signal` aborts or the locks are
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

const runKeys: ReadonlySet<string> = new Set(['signal'])

interface Term {
  readonly lease: Lease
  /** When the signal of the work aborted. */
  endedAt: number | undefined
  readonly resign: () => void
}

export class StoreElection implements Election {
  readonly name: string
  readonly #host: Host
  readonly #options: CampaignOptions
  readonly #grace: number
  #isRunning = false
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
    checkKeys(options, runKeys, 'run')
    checkSignal(options.signal)
    this.#host.closing.throwIfAborted()
    if (this.#isRunning)
      throw invalid(`this candidate for ${JSON.stringify(this.name)} runs already: make another election`)
    const campaign = new Campaign(this.#host, this.name, this.#options, anyOf(options.signal, this.#host.closing))
    this.#isRunning = true
    try {
      for (let isNext = true; isNext; ) {
        const term = campaign.term(async (lease, resign) => {
          await this.#lead(lease, resign, work)
          if (!lease.signal.aborted) campaign.delayNext()
        })
        this.#nextRelease = term.catch(() => {})
        isNext = await term
      }
    } finally {
      this.#isRunning = false
    }
  }

  async proclaim(value: string): Promise<void> {
    if (this.#term) return this.#term.lease.annotate(value)
    const message = `this candidate does not lead ${JSON.stringify(this.name)} now: proclaim from the work of run()`
    throw new LeaseError('LEASE_LOST', message, { leaseName: this.name })
  }

  async leader(): Promise<LeaseRecord | undefined> {
    return (await this.#host.locks.inspect(this.name)).holders[0]
  }

  observe(options: ObserveOptions = {}): AsyncIterable<LeaseRecord | undefined> {
    return observe(this.#host, this.name, options)
  }

  async resign(): Promise<void> {
    this.#term?.resign()
    await this.#released // also if the work has just returned by itself
  }

  health(): ElectionHealth {
    if (!this.#term) return { ok: true, state: this.#isRunning ? 'waiting' : 'idle', endingFor: 0 }
    const { lease } = this.#term
    if (!lease.signal.aborted) return { ok: true, state: 'leading', endingFor: 0 } // reading `aborted` may detect a loss
    const { endedAt } = this.#term
    const endingFor = this.#host.clock.now() - (endedAt ?? this.#host.clock.now())
    return { ok: endingFor <= this.#grace, state: 'ending', endingFor }
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
