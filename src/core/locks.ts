import { hostname } from 'node:os'
import { checkKeys, checkName, checkText, checkWait, invalid } from '../contract/check.ts'
import { LeaseError } from '../contract/errors.ts'
import { events } from '../contract/events.ts'
import type { Lease } from '../contract/lease.ts'
import { List } from '../contract/list.ts'
import { type NameState, stateOf } from '../contract/record.ts'
import { Cancel, pause, request } from '../contract/request.ts'
import type { Claim, LeaseRecord, Query, Store } from '../contract/store.ts'
import { LAST_WITHDRAWAL, LONGEST_REQUEST, LONGEST_TRY, requestLimit } from '../contract/time.ts'
import { LONGEST_DELAY } from '../contract/timers.ts'
import { type Election, type ElectionOptions, StoreElection } from '../recipes/election.ts'
import type { Host } from '../recipes/host.ts'
import { type LeadOptions, lead } from '../recipes/lead.ts'
import type { Leadership } from '../recipes/leadership.ts'
import { type Acquired, acquire } from './acquire.ts'
import type { Advice } from './advice/advice.ts'
import { Pulse } from './advice/pulse.ts'
import { type Core, type CoreEnvironment, coreEnvironment } from './core.ts'
import { Heartbeat } from './heartbeat.ts'
import { HeldLease } from './held-lease.ts'
import { look } from './look.ts'
import {
  type AcquireOptions,
  acquireKeys,
  type CloseOptions,
  checkOptions,
  closeKeys,
  defaultKeys,
  type LocksDefaults,
  type TryOptions,
  tryKeys,
} from './options.ts'
import { randomId } from './random-id.ts'
import type { OpenRenewer, Renewer } from './renewals.ts'
import { Signals } from './signals.ts'
import { withdraw } from './withdraw.ts'

/** Names to hold, in one store. */
export interface Locks extends Leadership, AsyncDisposable {
  readonly store: Store
  /**
   * Holds `name`, waiting for it if need be. Rejects `ACQUIRE_TIMEOUT` after `wait`, `STORE_UNAVAILABLE` when the store
   * did not answer for one ttl (or the wait, if that is shorter), the signal's own reason when it aborts, `CLOSED`,
   * `INVALID_ARGUMENT`. A rejection leaves no claim behind.
   */
  acquire(name: string, options?: AcquireOptions): Promise<Lease>
  /** Holds `name` if it is free now, else resolves to `undefined`. Never overtakes those who wait. */
  tryAcquire(name: string, options?: TryOptions): Promise<Lease | undefined>
  /**
   * Runs `work` while holding `name`, then releases. Resolves to the result of the work. Rejects with its error, or
   * with the reason of `lease.signal` if that is why it failed; with `LEASE_LOST` or `MAX_HOLD` and the `result` when
   * it returned after the lease was lost. A release that fails is the event `release_failed`; the result is returned.
   */
  using<Result>(name: string, work: (lease: Lease) => PromiseLike<Result>, options?: AcquireOptions): Promise<Result>
  /** Who holds `name`, and who waits for it where the store keeps a line. */
  inspect(name: string): Promise<NameState>
  /** All leases of names that begin with `prefix`, each followed by its waiters in order. @default all */
  list(prefix?: string): AsyncIterable<LeaseRecord>
  /**
   * Takes the name from whoever holds it; resolves to the token that now outranks the old holder's, or `undefined` if
   * nobody held it. The old holder learns of it at its next renewal; until then only a resource that has seen a higher
   * token refuses it. This process reports it as `lease_broken`, with `by`. @default the owner of these locks
   */
  break(name: string, by?: string): Promise<bigint | undefined>
  /**
   * What the renewals of these locks have shown so far, in this process and under its load: their latency, the delay of
   * the event loop, and the least ttl that follows. Asks the store nothing. Of renewals by `heartbeat: 'thread'` it is
   * the event loop of that thread. The event `ttl_too_short` tells by itself when a ttl is below ten times the p99.
   */
  advice(): Advice
  /**
   * No new claims; waits reject and signals abort with `CLOSED`; work is awaited for `grace`, then what is still held
   * is no longer renewed and ends with its ttl. Waits up to 1 s more for releases in the background. Closes the store,
   * which closes what it opened itself.
   */
  close(options?: CloseOptions): Promise<void>
}

const DEFAULT_TTL = 10_000

/** Names to hold, in `store`. The defaults are for every call that does not say otherwise. */
export function createLocks(store: Store, defaults: LocksDefaults = {}): Locks {
  return new StoreLocks(store, defaults, coreEnvironment())
}

/** An acquire under way. */
interface Wait {
  readonly cancel: Cancel
  readonly acquiring: Promise<Acquired>
}

/** The one implementation. Inside the package it is also made with a simulated environment. */
export class StoreLocks implements Locks {
  readonly store: Store
  readonly #core: Core
  readonly #defaults: LocksDefaults
  readonly #owner: string
  readonly #openThread: OpenRenewer | undefined
  #thread: Promise<Renewer> | undefined
  readonly #waits = new List<Wait>()
  readonly #signals = new Signals()
  readonly #pulse: Pulse
  /** Withdrawals in progress, which `close` waits for. */
  readonly #withdrawals = new List<Promise<unknown>>()
  /** Bodies of `using` that run, also those whose lease is lost. */
  #bodies = 0
  #onIdle: (() => void) | undefined
  #closing: Promise<void> | undefined
  readonly #closed = new AbortController()

  /** `openThread` brings the renewals of `heartbeat: 'thread'`, where that can be. */
  constructor(store: Store, defaults: LocksDefaults, environment: CoreEnvironment, openThread?: OpenRenewer) {
    if (typeof store?.acquire !== 'function')
      throw invalid('createLocks needs a store, such as sqlite(path) or redis(client); for a URL use connect(url)')
    checkKeys(defaults, defaultKeys, 'createLocks')
    checkOptions(defaults, store, openThread !== undefined, 'the default ttl of these locks')
    this.store = store
    this.#openThread = openThread
    this.#defaults = { ...defaults }
    this.#owner = defaults.owner ?? `${hostname()}:${process.pid}:${randomId().slice(0, 6)}`
    const heartbeat = new Heartbeat(environment.clock, environment.random)
    this.#pulse = new Pulse(environment.clock, store.guarantees?.shortestTtl ?? 0, environment.loopDelay)
    const onEnd = (): void => this.#whenIdle()
    const inBackground = (withdrawal: Promise<unknown>): void => this.#inBackground(withdrawal)
    this.#core = { ...environment, store, heartbeat, pulse: this.#pulse, leases: new List(), onEnd, inBackground }
  }

  async acquire(name: string, options: AcquireOptions = {}): Promise<Lease> {
    return (await this.#acquire('acquire', name, options, acquireKeys)).handle
  }

  async tryAcquire(name: string, options: TryOptions = {}): Promise<Lease | undefined> {
    try {
      return (await this.#acquire('tryAcquire', name, options, tryKeys)).handle
    } catch (error) {
      // A caller may abort with the error of another claim: that is no answer about this name.
      if (LeaseError.is(error) && error.code === 'ACQUIRE_TIMEOUT' && error !== options.signal?.reason) return undefined
      throw error
    }
  }

  async using<Result>(
    name: string,
    work: (lease: Lease) => PromiseLike<Result>, // JavaScript may return a plain value
    options: AcquireOptions = {},
  ): Promise<Result> {
    if (typeof work !== 'function')
      throw invalid('using needs the work as its second argument: a function of the lease')
    const lease = await this.#acquire('using', name, options, acquireKeys)
    const stop = this.#signals.onAbort(options.signal, reason => lease.abort(reason))
    this.#bodies += 1
    let lost: LeaseError | undefined
    let result: Result
    try {
      result = await work(lease.handle)
    } catch (error) {
      const { aborted, reason } = lease.signal
      throw aborted && isAbort(error, reason) ? reason : error
    } finally {
      stop()
      const ending = lease.end()
      this.#bodies -= 1
      this.#whenIdle()
      lost = await ending
    }
    if (lost) throw new LeaseError(lost.code, lost.message, { lease: name, cause: lost, result })
    return result
  }

  lead(name: string, options: LeadOptions = {}): AsyncIterable<Lease> {
    this.#assertOpen()
    return lead(this.#host(), name, options)
  }

  election(name: string, options: ElectionOptions = {}): Election {
    return new StoreElection(this.#host(), name, options)
  }

  async inspect(name: string): Promise<NameState> {
    checkName(name)
    const records: LeaseRecord[] = []
    for await (const record of this.#records({ name })) records.push(record)
    const { store } = this
    if (!store.nodes) return stateOf(name, records)
    const nodes = await request(this.#core.clock, this.#requestLimit(), async signal => store.nodes?.(signal) ?? [])
    return { ...stateOf(name, records), nodes }
  }

  async *list(prefix = ''): AsyncIterable<LeaseRecord> {
    checkText(prefix, 'the prefix of names')
    yield* this.#records({ prefix })
  }

  async break(name: string, by: string = this.#owner): Promise<bigint | undefined> {
    checkName(name)
    checkText(by, 'by')
    this.#assertOpen()
    const token = await request(this.#core.clock, this.#requestLimit(), signal => this.store.break(name, by, signal))
    if (token !== undefined && events.lease_broken.hasSubscribers) events.lease_broken.publish({ name, by, token })
    return token
  }

  advice(): Advice {
    return this.#pulse.advice()
  }

  async close(options: CloseOptions = {}): Promise<void> {
    checkKeys(options, closeKeys, 'close')
    const { grace = 5_000 } = options
    checkWait(grace, 'grace')
    if (!this.#closing) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#closing = promise // before any signal aborts: a listener may acquire, or close as well
      resolve(this.#close(grace))
    }
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** The lease held here on `name`. */
  protected heldLease(name: string): HeldLease | undefined {
    for (const lease of this.#core.leases.values()) if (lease.name === name && lease.remaining > 0) return lease
    return undefined
  }

  async #acquire(
    verb: 'acquire' | 'tryAcquire' | 'using',
    name: string,
    options: AcquireOptions,
    known: ReadonlySet<string>,
  ): Promise<HeldLease> {
    checkKeys(options, known, verb)
    checkName(name)
    checkOptions(options, this.store, this.#openThread !== undefined)
    this.#assertOpen()
    const defaults = this.#defaults
    const ttl = options.ttl ?? defaults.ttl ?? DEFAULT_TTL
    const limit = verb === 'tryAcquire' ? 0 : (options.wait ?? defaults.wait ?? Number.POSITIVE_INFINITY)
    const note = options.note ?? defaults.note ?? ''
    const owner = options.owner ?? this.#owner
    const heartbeat = options.heartbeat ?? defaults.heartbeat ?? true
    const livenessLimit = options.livenessLimit ?? defaults.livenessLimit
    const maxHold = options.maxHold ?? defaults.maxHold
    // Work that runs keeps the process alive; a lease that was only handed out does not.
    const background = verb !== 'using'
    const claim: Claim = { name, id: randomId(), owner, ttl, note, queue: limit > 0 }

    if (events.acquire_began.hasSubscribers) events.acquire_began.publish(claim)
    const cancel = new Cancel()
    const stop = this.#signals.onAbort(options.signal, reason => cancel.cancel(reason))
    let thread: Renewer | undefined
    const claimIt = (): Promise<Acquired> => acquire(this.#core, claim, limit, cancel)
    const claimWithThread = async (): Promise<Acquired> => {
      thread = await request(this.#core.clock, LONGEST_DELAY, () => this.#startThread(), { cancel })
      return claimIt()
    }
    const acquiring = heartbeat === 'thread' ? claimWithThread() : claimIt()
    const wait = this.#waits.add({ cancel, acquiring })
    try {
      const acquired = await acquiring
      if (cancel.cancelled) this.#inBackground(withdraw(this.#core, claim, acquired.unsettled)) // in this very turn
      cancel.throwIfCancelled()
      const lease = new HeldLease(this.#core, claim, acquired, {
        heartbeat: heartbeat === true,
        renewals: thread?.renewals(claim, acquired, { livenessLimit, maxHold }),
        background,
        maxHold,
      })
      const { waited, requests } = acquired
      // Only now: a listener may well release it, or close these locks.
      if (events.lease_acquired.hasSubscribers)
        events.lease_acquired.publish({ id: claim.id, lease: lease.handle, waited, requests })
      return lease
    } catch (error) {
      if (events.acquire_failed.hasSubscribers) events.acquire_failed.publish({ id: claim.id, name, owner, error })
      throw error
    } finally {
      stop()
      this.#waits.remove(wait)
    }
  }

  /** Limits itself; only the first lease that wants the thread waits for it. */
  async #startThread(): Promise<Renewer | undefined> {
    this.#thread ??= this.#openThread?.(this.#pulse)
    const thread = await this.#thread
    await thread?.ready()
    return thread
  }

  #records(query: Query): AsyncIterable<LeaseRecord> {
    this.#assertOpen()
    return look(this.#core, query, this.#requestLimit())
  }

  async #close(grace: number): Promise<void> {
    const closed = new LeaseError('CLOSED', 'these locks were closed')
    this.#closed.abort(closed)
    for (const { cancel } of this.#waits.values()) cancel.cancel(closed)
    for (const lease of this.#core.leases.values()) lease.abort(closed)
    const { clock } = this.#core
    const arm = (wake: () => void): void => {
      this.#onIdle = wake
    }
    if (this.#core.leases.size > 0 || this.#bodies > 0) await pause(clock, grace, { arm })
    for (const lease of this.#core.leases.values()) lease.stopRenewing()
    const withdrawn = async (): Promise<void> => {
      await Promise.allSettled(this.#waits.values().map(({ acquiring }) => acquiring)) // each leaves its withdrawal in the background
      await Promise.all(this.#withdrawals.values())
    }
    await request(clock, LAST_WITHDRAWAL, withdrawn).catch(() => {})
    await (await this.#thread)?.close()
    // A store that cannot be closed has nothing left that anybody could mend here.
    await request(clock, LONGEST_REQUEST, () => Promise.resolve(this.store[Symbol.asyncDispose]())).catch(() => {})
  }

  #whenIdle(): void {
    if (this.#core.leases.size > 0) return
    this.#pulse.rest()
    if (this.#bodies === 0) this.#onIdle?.()
  }

  #inBackground(withdrawal: Promise<unknown>): void {
    const entry = this.#withdrawals.add(withdrawal)
    void withdrawal.then(() => this.#withdrawals.remove(entry))
  }

  #host(): Host {
    const { clock, random } = this.#core
    return { locks: this, closing: this.#closed.signal, clock, random }
  }

  #requestLimit(): number {
    return Math.min(requestLimit(this.#defaults.ttl ?? DEFAULT_TTL), LONGEST_TRY)
  }

  #assertOpen(): void {
    if (this.#closing) throw new LeaseError('CLOSED', 'these locks were closed: make new ones with createLocks')
  }
}

/** Did work fail because it was told to stop? Many functions throw an AbortError of their own instead of the reason. */
function isAbort(error: unknown, reason: unknown): boolean {
  return error === reason || (error instanceof Error && (error.name === 'AbortError' || error.cause === reason))
}
