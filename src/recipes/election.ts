import { checkKeys, checkSignal, checkWait, invalid } from '../contract/check.ts'
import { LeaseError } from '../contract/errors.ts'
import type { Lease } from '../contract/lease.ts'
import type { LeaseRecord } from '../contract/store.ts'
import { Campaign, type CampaignOptions, checkCampaign } from './campaign.ts'
import type { Host } from './host.ts'
import { type ObserveOptions, observe } from './observe.ts'
import { anyOf } from './rest.ts'

export interface ElectionOptions extends CampaignOptions {
  /**
   * Milliseconds for which work may go on after it was told to end, before `health` says that this process should be
   * ended. @default 10,000
   */
  readonly grace?: number | undefined
}

/** How a candidate is, for a liveness probe. */
export interface ElectionHealth {
  /** False: work that was told to end has gone on for longer than the grace, so this process should be ended. */
  readonly ok: boolean
  /** `idle`: `run` was not called, or has ended. `ending`: the work was told to end and has not ended. */
  readonly state: 'idle' | 'waiting' | 'leading' | 'ending'
  /** Milliseconds since the work was told to end; 0 unless `ending`. */
  readonly endingFor: number
}

/** One name, led by one candidate at a time. */
export interface Election {
  readonly name: string
  /**
   * Runs `work` whenever this candidate leads; while it runs, the candidate leads. When the lease is lost, at `resign`
   * and when `signal` aborts, the signal of the lease tells the work to end, and its end is awaited before the name is
   * given back or waited for again. Resolves once `signal` has aborted, or the locks are closed, and the work has ended.
   *
   * Work that returns by itself gives the name back and is begun again after `pause`; work that throws after a pause
   * that doubles (the event `leadership_delayed`). Rejects with what asking again cannot mend, with what the work threw
   * after `signal` aborted, `INVALID_ARGUMENT` while it runs already, and `CLOSED`.
   */
  run(work: (lease: Lease) => unknown, options?: { readonly signal?: AbortSignal | undefined }): Promise<void>
  /**
   * Publishes another value for the rest of the term under way, as `Lease.annotate`, which rejects with the same errors;
   * `LEASE_LOST` also if this candidate does not lead. Each term begins with the `note` of the election.
   */
  proclaim(value: string): Promise<void>
  /** Who leads now, with its token, and the value that it publishes as `note`. Rejects as `Locks.inspect`. */
  leader(): Promise<LeaseRecord | undefined>
  /**
   * Who leads, at first and whenever that is another, or nobody (`undefined`), or it publishes another value, until
   * `signal` aborts or the locks are closed. The store is looked at every so often: who led for less than that, and a
   * value that did not stand for that long, may not be seen. What is seen is in order: tokens rise. A store that fails is
   * looked at again.
   */
  observe(options?: ObserveOptions): AsyncIterable<LeaseRecord | undefined>
  /**
   * Gives up the term under way, if there is one: tells the work to end, and resolves when it has and the name is given
   * back. The candidate then waits for it again, after `pause`. Do not await it in the work itself, which it waits for.
   */
  resign(): Promise<void>
  /** How this candidate is, at once and without asking the store. */
  health(): ElectionHealth
}

const runKeys: ReadonlySet<string> = new Set(['signal'])

interface Term {
  readonly lease: Lease
  /** When the work was told to end. */
  endedAt: number | undefined
  readonly leave: () => void
}

export class StoreElection implements Election {
  readonly name: string
  readonly #host: Host
  readonly #options: CampaignOptions
  readonly #grace: number
  #runs = false
  #term: Term | undefined
  #turn: Promise<unknown> | undefined
  /** Until the name of the last term, which may be under way, is given back. */
  #given: Promise<unknown> | undefined

  constructor(host: Host, name: string, options: ElectionOptions) {
    checkCampaign('election', name, options, ['grace'])
    const { grace = 10_000, ...rest } = options
    checkWait(grace, 'grace')
    this.name = name
    this.#host = host
    this.#options = rest
    this.#grace = grace
  }

  async run(
    work: (lease: Lease) => unknown,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<void> {
    if (typeof work !== 'function') throw invalid('run needs the work as its first argument: a function of the lease')
    checkKeys(options, runKeys, 'run')
    checkSignal(options.signal)
    this.#host.closing.throwIfAborted()
    if (this.#runs) throw invalid(`this candidate for ${JSON.stringify(this.name)} runs already: make another election`)
    const campaign = new Campaign(this.#host, this.name, this.#options, anyOf(options.signal, this.#host.closing))
    this.#runs = true
    try {
      for (let goesOn = true; goesOn; ) {
        const turn = campaign.term(async (lease, leave) => {
          await this.#lead(lease, leave, work)
          if (!lease.signal.aborted) campaign.yieldNext()
        })
        this.#turn = turn.catch(() => {})
        goesOn = await turn
      }
    } finally {
      this.#runs = false
    }
  }

  async proclaim(value: string): Promise<void> {
    if (this.#term) return this.#term.lease.annotate(value)
    const message = `this candidate does not lead ${JSON.stringify(this.name)} now: proclaim from the work of run()`
    throw new LeaseError('LEASE_LOST', message, { lease: this.name })
  }

  async leader(): Promise<LeaseRecord | undefined> {
    return (await this.#host.locks.inspect(this.name)).holder
  }

  observe(options: ObserveOptions = {}): AsyncIterable<LeaseRecord | undefined> {
    return observe(this.#host, this.name, options)
  }

  async resign(): Promise<void> {
    this.#term?.leave()
    await this.#given // also when the work has just ended by itself, and its name is still being given back
  }

  health(): ElectionHealth {
    if (!this.#term) return { ok: true, state: this.#runs ? 'waiting' : 'idle', endingFor: 0 }
    const { lease } = this.#term
    if (!lease.signal.aborted) return { ok: true, state: 'leading', endingFor: 0 } // the look may find that it is lost
    const { endedAt } = this.#term
    const endingFor = this.#host.clock.now() - (endedAt ?? this.#host.clock.now())
    return { ok: endingFor <= this.#grace, state: 'ending', endingFor }
  }

  async #lead(lease: Lease, leave: () => void, work: (lease: Lease) => unknown): Promise<void> {
    const { clock } = this.#host
    const term: Term = { lease, endedAt: undefined, leave }
    const onEnd = (): void => {
      term.endedAt = clock.now()
    }
    lease.signal.addEventListener('abort', onEnd)
    this.#term = term
    this.#given = this.#turn
    try {
      await work(lease)
    } finally {
      lease.signal.removeEventListener('abort', onEnd)
      this.#term = undefined
    }
  }
}
