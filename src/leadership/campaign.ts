import { checkDuration, checkKeys, checkName, checkSignal, checkWhole, invalid, show } from '../contract/check.ts'
import { LeaseError, messageOf } from '../contract/errors.ts'
import { events } from '../contract/events.ts'
import { heldBy } from '../contract/identity.ts'
import type { Lease } from '../contract/lease.ts'
import type { TermOutcome } from '../contract/lease-events.ts'
import { backoff } from '../contract/request.ts'
import { campaignPauses } from '../contract/time.ts'
import { warn, warnAgain } from '../contract/warnings.ts'
import { acquired } from '../core/acquirable.ts'
import type { Host } from '../core/host.ts'
import { type LeaseOptions, leaseKeys } from '../core/options.ts'
import { sleep } from './interruptible.ts'
import { type SafeError, Streak, safeError } from './streak.ts'

/** The options of a candidate. The leader shows `note` to everybody until it proclaims another one. */
export interface CampaignOptions extends LeaseOptions {
  /**
   * Milliseconds until the candidate tries again after a failure of the store, or after the work returned. It doubles
   * with each failure in a row, and is then random between half of it and all of it. @default 1,000
   */
  readonly pause?: number | undefined
  /** Milliseconds up to which `pause` doubles. A longer term or wait resets it. @default 30,000, or `pause` if longer */
  readonly maxPause?: number | undefined
}

/** The limits of a candidate's wait: it waits for as long as another leads. */
const UNLIMITED = { wait: Number.POSITIVE_INFINITY, maxWaiters: Number.POSITIVE_INFINITY }

const campaignKeys: readonly string[] = [...leaseKeys, 'pause', 'maxPause']

/** Throws `INVALID_ARGUMENT` for invalid options. The options of the lease are checked when it is acquired. */
export function checkCampaign(verb: string, name: string, options: CampaignOptions, more: readonly string[]): void {
  checkName(name)
  if (typeof options === 'function') throw invalid(`${verb} takes no work: use election(name).run(work)`)
  checkKeys(options, new Set([...campaignKeys, ...more]), verb)
  const { pause, maxPause } = campaignPauses(options)
  checkDuration(pause, 'pause')
  checkDuration(maxPause, 'maxPause')
  if (maxPause < pause)
    throw invalid(`maxPause (${maxPause} ms) is shorter than pause (${pause} ms): make it at least as long`)
}

/** The options with which a candidate runs its work. */
export interface RunOptions {
  /** Ends the candidacy: the signal of a term aborts, and `run` resolves when its work has returned. */
  readonly signal?: AbortSignal | undefined
  /**
   * Called with each error of the work, and with the number of failures in a row. If it throws or rejects, the warning
   * `HOLDFAST_ON_ERROR` is emitted.
   */
  readonly onError?: ((error: unknown, failures: number) => unknown) | undefined
  /** After this many failures of the work in a row `run` rejects with the last error. @default no limit */
  readonly maxFailures?: number | undefined
}

const runKeys: ReadonlySet<string> = new Set(['signal', 'onError', 'maxFailures'])

/** Throws `INVALID_ARGUMENT` for invalid options. */
export function checkRun(options: RunOptions): void {
  checkKeys(options, runKeys, 'run')
  const { signal, onError, maxFailures } = options
  checkSignal(signal)
  if (onError !== undefined && typeof onError !== 'function')
    throw invalid(`onError must be a function of the error, not ${show(onError)}`)
  if (maxFailures !== undefined) checkWhole(maxFailures, 'maxFailures', 1)
}

interface EndedTerm {
  readonly outcome: TermOutcome
  /** `undefined`: the name was not acquired. */
  readonly lease: Lease | undefined
  readonly error?: unknown
}

/** Leads a name for one candidate, one term after the other. */
export class Campaign {
  readonly #host: Host
  readonly #name: string
  readonly #options: LeaseOptions
  readonly #pause: number
  readonly #maxPause: number
  readonly #stop: AbortSignal
  readonly #run: RunOptions
  /** Failures of the work. */
  readonly #work = new Streak()
  /** Failures of the store since its last answer. */
  readonly #store = new Streak()
  /** The time at which the store first answered in the term that is awaited or in progress. */
  #answeredAt: number | undefined
  /** Milliseconds to wait before the next term. */
  #delay = 0

  /** `stop` ends the campaign and the term in progress. It is not the signal of `run`. */
  constructor(host: Host, name: string, options: CampaignOptions, stop: AbortSignal, run: RunOptions = {}) {
    const { pause: _, maxPause: __, ...lease } = options
    const { pause, maxPause } = campaignPauses(options)
    this.#host = host
    this.#name = name
    this.#options = lease
    this.#pause = pause
    this.#maxPause = maxPause
    this.#stop = stop
    this.#run = run
  }

  /** Failures of the work in a row. */
  get failures(): number {
    this.#endOldStreak()
    return this.#work.count
  }

  /** The last error of the store or of the work. `undefined`: neither fails. */
  get lastError(): SafeError | undefined {
    this.#endOldStreak()
    return this.#store.error ?? this.#work.error
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
    const ended = await this.#lead(ending.signal, lease => body(lease, () => this.#resign(ending)))
    this.#stop.removeEventListener('abort', stop)
    this.#onEnd(ended)
    return !this.#stop.aborted
  }

  async #lead(signal: AbortSignal, body: (lease: Lease) => unknown): Promise<EndedTerm> {
    let lease = undefined as Lease | undefined
    let outcome: TermOutcome = 'stopped'
    const work = async (granted: Lease): Promise<void> => {
      lease = granted
      this.#onAnswer()
      if (!lease.signal.aborted) await body(lease)
      if (lease.signal.aborted) return
      if (lease.remaining > 0) outcome = 'returned' // otherwise the work released the lease, so it resigned
      this.#delayNext()
    }
    try {
      const options = { ...this.#options, ...UNLIMITED, signal }
      const terms = { ...this.#host.terms('using', options), onBusy: () => this.#onAnswer() }
      const { calls } = this.#host
      await calls.run(await calls.hold(this.#name, terms, acquired), work, signal)
      return { outcome, lease }
    } catch (error) {
      if (signal.aborted && error === signal.reason) return { outcome: 'stopped', lease }
      // The lease decides, not the error: work may throw the loss of an earlier term.
      const reasons = lease?.signal.aborted ? [lease.signal.reason, heldBy(lease).loss] : []
      const { cause } = Object(error) as { cause?: unknown }
      const isLost = reasons.some(reason => LeaseError.is(reason) && (error === reason || cause === reason))
      return { outcome: isLost ? 'lost' : 'failed', lease, error }
    }
  }

  #onAnswer(): void {
    this.#answeredAt ??= this.#host.clock.now()
    this.#store.end()
  }

  /** A term that has led or waited for `maxPause` ends the streak of failures before it. */
  #endOldStreak(): void {
    const since = this.#answeredAt ?? Number.POSITIVE_INFINITY
    if (this.#host.clock.now() - since >= this.#maxPause) this.#work.end()
  }

  #onEnd({ outcome, lease, error }: EndedTerm): void {
    this.#endOldStreak()
    this.#answeredAt = undefined
    if (lease && events.term_ended.hasSubscribers)
      events.term_ended.publish({ lease, outcome, error: outcome === 'failed' ? error : undefined })
    if (outcome === 'failed') this.#onFailure(error, lease ? this.#work : this.#store)
    // The signal of the lease and the event lease_lost report the loss.
    else if (outcome === 'lost') this.#store.error = lease && overdueError(lease)
    else if (lease) this.#work.end()
  }

  #onFailure(error: unknown, streak: Streak): void {
    const isOfWork = streak === this.#work
    const name = this.#name
    streak.add(safeError(isOfWork ? 'the work failed' : 'the name was not acquired', error))
    const failures = streak.count
    if (isOfWork ? this.#stop.aborted : !(LeaseError.is(error) && error.retryable)) throw error
    if (isOfWork) this.#report(error, failures)
    if (isOfWork && failures >= (this.#run.maxFailures ?? Number.POSITIVE_INFINITY)) throw error
    const pause = backoff(failures, this.#host.random, [this.#pause, this.#maxPause])
    const delay = Math.round(Math.max(pause, (LeaseError.is(error) && error.retryAfter) || 0))
    this.#delay = delay
    events.leadership_delayed.publish({ name, error, failures, delay })
    // Warn once per streak, not per process: last week's warning does not say that the work fails again today.
    const next = `the next try is in ${delay} ms, and only onError gets further failures in a row`
    if (isOfWork && failures === 1)
      warnAgain('HOLDFAST_TERM_FAILED', `the work of the leader of ${JSON.stringify(name)} failed; ${next}`, error)
  }

  /** Calls `onError`. An error of this function must not end the election. */
  #report(error: unknown, failures: number): void {
    const { onError } = this.#run
    const call = async (): Promise<unknown> => onError?.(error, failures)
    call().catch(problem => {
      const text = messageOf(problem)
      warn('HOLDFAST_ON_ERROR', `onError of the election ${JSON.stringify(this.#name)} failed: ${text}`, text)
    })
  }

  #resign(ending: AbortController): void {
    ending.abort(
      new LeaseError('CLOSED', `the leader of ${JSON.stringify(this.#name)} resigned`, { leaseName: this.#name }),
    )
    this.#delayNext()
  }

  /** Delays the next term: another candidate may lead, or the work seems to be done. */
  #delayNext(): void {
    this.#delay = Math.max(this.#delay, this.#pause)
  }
}

/** The error that `health` shows until the store answers again. `undefined`: the loss has another cause. */
export function overdueError(lease: Lease): SafeError | undefined {
  if (heldBy(lease).lossReason !== 'expired') return undefined
  return { code: 'LEASE_LOST', message: 'the lease was not renewed in time: LEASE_LOST' }
}
