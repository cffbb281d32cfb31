import { hostname } from 'node:os'
import {
  checkBoolean,
  checkKeys,
  checkName,
  checkSignal,
  checkStoredName,
  checkText,
  checkWait,
  invalid,
} from '../contract/check.ts'
import { events } from '../contract/events.ts'
import type { Lease } from '../contract/lease.ts'
import { List } from '../contract/list.ts'
import { randomId } from '../contract/random-id.ts'
import { isLease, type NameState, stateOf } from '../contract/record.ts'
import { Cancel, request } from '../contract/request.ts'
import type { Claim, LeaseRecord, NodeRecord, Pacing, Query, Store } from '../contract/store.ts'
import { DEFAULT_TTL, LONGEST_TRY, requestLimit } from '../contract/time.ts'
import { LONGEST_DELAY } from '../contract/timers.ts'
import { Acquiring, type ResultOf } from './acquirable.ts'
import { type Acquired, Acquisition } from './acquisition.ts'
import type { Advice } from './advice/advice.ts'
import { Closing } from './closing.ts'
import type { Core, CoreEnvironment } from './core.ts'
import { Family } from './family.ts'
import type { HeldLease } from './held-lease.ts'
import type { Host } from './host.ts'
import { inspect } from './inspection.ts'
import type { Leasing } from './leasing.ts'
import { type Once, once } from './once.ts'
import {
  type AcquireOptions,
  type AcquireTerms,
  type BreakOptions,
  type CloseOptions,
  checkBreakOptions,
  checkOptions,
  closeKeys,
  defaultKeys,
  isTry,
  type LocksDefaults,
  listKeys,
  type OnceOptions,
  type PingOptions,
  pingKeys,
  runsWork,
  type TryOptions,
  type Verb,
} from './options.ts'
import { type Asker, ping } from './ping.ts'
import { holdWith, type OpenRenewer, type Renewer } from './renewer.ts'
import { Signals } from './signals.ts'
import { hasTickets, Tickets, ticketName } from './tickets.ts'
import { withdrawIfCancelled } from './withdraw.ts'
import { type Tried, type Work, type WorkArguments, Works } from './work.ts'

/** `Locks` without leadership and sharing. */
export class CoreLocks implements Leasing {
  readonly store: Store
  protected readonly core: Core
  /** What calls, leadership and sharing need from these locks. */
  protected readonly host: Host
  protected readonly closing: Closing
  protected readonly family: Family
  readonly #leases = new List<HeldLease>()
  readonly #defaults: LocksDefaults
  readonly #owner: string
  readonly #signals = new Signals()

  /** `openRenewer`: see `Family`. `family`: the family of other locks over the same store. */
  constructor(
    store: Store,
    defaults: LocksDefaults,
    environment: CoreEnvironment,
    openRenewer?: OpenRenewer,
    family?: Family,
  ) {
    // `acquire` would not tell a store from locks, which have that method too.
    if (typeof store?.renew !== 'function')
      throw invalid('createLocks needs a store, such as sqlite(path) or redis(client); for a URL await connect(url)')
    checkKeys(defaults, defaultKeys, 'Locks')
    this.family = family ?? new Family(store, environment, openRenewer)
    const { heartbeat, statistics, waiters, hasThread } = this.family
    checkOptions(defaults, store, hasThread, 'the default ttl of these locks')
    const { clock, random, loopDelay } = environment
    this.store = store
    this.closing = new Closing(clock, this.#leases, this.family, !loopDelay)
    this.#defaults = { ...defaults }
    this.#owner = defaults.owner ?? `${hostname()}:${process.pid}:${randomId().slice(0, 6)}`
    this.family.join(this.#leases)
    this.core = {
      ...environment,
      store,
      heartbeat,
      statistics,
      leases: this.#leases,
      heldLease: name => this.heldLease(name),
      onEnd: () => {
        if (!this.family.isHolding) statistics.pause()
        this.closing.checkIdle()
      },
      inBackground: withdrawal => this.closing.inBackground(withdrawal),
      onWait: () => this.closing.watch(),
      waiters,
    }
    this.host = {
      clock,
      random,
      core: this.core,
      works: new Works(this.closing, this.#signals),
      signals: this.#signals,
      closing: this.closing.signal,
      inspect: name => this.inspect(name),
      terms: (verb, options) => this.#terms(verb, options),
      hold: (name, each, resultOf) => this.#hold(name, each, resultOf),
    }
  }

  acquire(name: string, options?: AcquireOptions): Promise<Lease> {
    return new OneName(this.host, name).acquire(options)
  }

  tryAcquire(name: string, options?: TryOptions): Promise<Lease | undefined> {
    return new OneName(this.host, name).tryAcquire(options)
  }

  using<Result>(name: string, ...args: WorkArguments<AcquireOptions, Lease, Result>): Promise<Result> {
    return new OneName(this.host, name).using(...args)
  }

  tryUsing<Result>(name: string, ...args: WorkArguments<TryOptions, Lease, Result>): Promise<Tried<Result>> {
    return new OneName(this.host, name).tryUsing(...args)
  }

  once<Result>(name: string, options: OnceOptions, work: Work<Lease, Result>): Promise<Once<Result>> {
    return once(this.host, name, options, work)
  }

  async inspect(name: string): Promise<NameState> {
    checkStoredName(name)
    const records: (LeaseRecord | NodeRecord)[] = []
    for await (const record of this.#records({ name })) records.push(record)
    return stateOf(name, records)
  }

  /** Only the dashboard passes `pacing`. */
  async *list(prefix = '', pacing: Pacing = {}): AsyncIterable<LeaseRecord> {
    checkText(prefix, 'the prefix of names')
    checkKeys(pacing, listKeys, 'list')
    for await (const record of this.#records({ ...pacing, prefix })) if (isLease(record)) yield record
  }

  async break(name: string, options: BreakOptions = {}): Promise<bigint | undefined> {
    checkStoredName(name)
    checkBreakOptions(options)
    const { by = this.#owner, slot, token } = options
    this.closing.assertOpen()
    const { store } = this
    // Where a claim holds alone, a slot is a name of its own.
    const [stored, parameters] =
      slot !== undefined && hasTickets(store) ? [ticketName(name, slot), { by, token }] : [name, { by, slot, token }]
    const ask = (signal: AbortSignal): Promise<bigint | undefined> => store.break(stored, parameters, signal)
    const higher = await request(this.core.clock, this.#requestLimit(), ask)
    if (higher !== undefined) events.lease_broken.publish({ name, by, token: higher })
    return higher
  }

  async ping(options: PingOptions = {}): Promise<void> {
    checkKeys(options, pingKeys, 'ping')
    checkSignal(options.signal)
    return this.answered(options.signal, ping)
  }

  /** Runs `ask` until the signal aborts or these locks are closed. */
  protected async answered(
    signal: AbortSignal | undefined,
    ask: (asker: Asker, cancel: Cancel) => Promise<void>,
  ): Promise<void> {
    this.closing.assertOpen()
    const cancel = new Cancel()
    const acquiring = Promise.withResolvers<void>()
    const stop = this.#signals.onAbort(signal, reason => cancel.cancel(reason))
    const call = this.closing.calls.add({ cancel, acquiring: acquiring.promise })
    try {
      await ask({ ...this.core, owner: this.#owner }, cancel)
    } finally {
      acquiring.resolve()
      stop()
      this.closing.endCall(call)
    }
  }

  advice(): Advice {
    return this.family.statistics.advice()
  }

  async close(options: CloseOptions = {}): Promise<void> {
    checkKeys(options, closeKeys, 'close')
    const { grace = 5_000, release = false } = options
    checkWait(grace, 'grace')
    checkBoolean(release, 'release')
    return this.closing.close(grace, release, () => this.family.leave(this.#leases))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Throws `CLOSED` if these locks are closed. For code that uses the store directly. */
  assertOpen(): void {
    this.closing.assertOpen()
  }

  /** The lease on `name` that these locks or others of the family hold. Of several permits it is the oldest. */
  protected heldLease(name: string): HeldLease | undefined {
    return this.family.leases().find(lease => lease.name === name && lease.remaining > 0)
  }

  /** The defaults of locks that are derived from these. They have the same owner. */
  protected derived(defaults: LocksDefaults): LocksDefaults {
    checkKeys(defaults, defaultKeys, 'with')
    this.closing.assertOpen()
    const given = Object.entries(defaults).filter(([, value]) => value !== undefined)
    return { ...this.#defaults, owner: this.#owner, ...Object.fromEntries(given) }
  }

  /** Completes the options of a call with the defaults. Throws `CLOSED`, and `INVALID_ARGUMENT` as `checkOptions`. */
  #terms(verb: Verb, options: AcquireOptions): AcquireTerms {
    checkOptions(options, this.store, this.family.hasThread)
    if (options.maxBlocked !== undefined && (options.heartbeat ?? 'thread') !== 'thread')
      throw invalid("maxBlocked needs heartbeat: 'thread'")
    this.closing.assertOpen()
    const defaults = this.#defaults
    return {
      ttl: options.ttl ?? defaults.ttl ?? DEFAULT_TTL,
      wait: isTry(verb) ? 0 : (options.wait ?? defaults.wait ?? Number.POSITIVE_INFINITY),
      maxWaiters: options.maxWaiters ?? defaults.maxWaiters ?? Number.POSITIVE_INFINITY,
      note: options.note ?? defaults.note ?? '',
      owner: options.owner ?? this.#owner,
      heartbeat: options.heartbeat ?? defaults.heartbeat ?? true,
      maxBlocked: options.maxBlocked ?? defaults.maxBlocked,
      maxHold: options.maxHold ?? defaults.maxHold,
      background: !runsWork(verb),
      signal: options.signal,
    }
  }

  /** Implements `Host.hold`. */
  async #hold<Result>(
    name: string,
    terms: AcquireTerms,
    resultOf: (held: HeldLease | Acquisition) => Result,
  ): Promise<Result> {
    const { ttl, wait: limit, note, owner, heartbeat, maxBlocked, maxHold, background } = terms
    const claim: Claim = {
      name,
      id: randomId(),
      owner,
      ttl,
      note,
      queue: limit > 0,
      limit: terms.limit,
      units: terms.units,
    }

    if (events.acquire_began.hasSubscribers)
      events.acquire_began.publish({ id: claim.id, name, owner, ttl, kind: terms.kind })
    const cancel = new Cancel()
    const { signal } = this.closing
    if (signal.aborted) cancel.cancel(signal.reason) // a listener may have aborted it
    const stop = this.#signals.onAbort(terms.signal, reason => cancel.cancel(reason))
    const { core } = this
    const tickets = terms.limit !== undefined && terms.limit > 1 && hasTickets(core.store) && new Tickets(core, claim)
    const asking = tickets ? { ...core, store: tickets } : core
    const acquisition = new Acquisition(asking, claim, terms, cancel)
    let renewer: Renewer | undefined
    const acquireWithThread = async (): Promise<Acquired | undefined> => {
      renewer = await request(this.core.clock, LONGEST_DELAY, () => this.family.startRenewer(), { cancel })
      return acquisition.run()
    }
    const acquiring = heartbeat === 'thread' ? acquireWithThread() : acquisition.run()
    const call = this.closing.calls.add({ cancel, acquiring, acquisition })
    let held: HeldLease | Acquisition = acquisition
    try {
      const acquired = await acquiring
      if (acquired) {
        const granted = tickets ? tickets.settle() : claim
        const { waited } = acquired
        const { sent, requests } = tickets || acquired
        withdrawIfCancelled(core, granted, acquired.unsettled, cancel)
        const holdOptions = { heartbeat: heartbeat !== false, background, maxHold, maxBlocked }
        const lease = holdWith(renewer, core, granted, { ...acquired, sent }, holdOptions)
        held = lease
        // Last, because a listener may release the lease or close these locks.
        if (events.lease_acquired.hasSubscribers)
          events.lease_acquired.publish({ id: claim.id, lease: lease.handle, waited, requests })
      } else if (events.not_acquired.hasSubscribers)
        // The event has the error that `acquire` throws.
        events.not_acquired.publish({ id: claim.id, name, owner, error: acquisition.timeout() })
    } catch (error) {
      if (events.not_acquired.hasSubscribers) events.not_acquired.publish({ id: claim.id, name, owner, error })
      throw error
    } finally {
      stop()
      this.closing.endCall(call)
    }
    return resultOf(held)
  }

  #records(query: Query): AsyncIterable<LeaseRecord | NodeRecord> {
    this.closing.assertOpen()
    return inspect(this.core, query, this.#requestLimit())
  }

  #requestLimit(): number {
    return Math.min(requestLimit(this.#defaults.ttl ?? DEFAULT_TTL), LONGEST_TRY)
  }
}

/** The calls for a lease on one name. */
class OneName extends Acquiring<Lease> {
  readonly #name: string

  constructor(host: Host, name: string) {
    super(host)
    this.#name = name
  }

  protected override get first(): string {
    return 'name'
  }

  protected hold<R>(terms: AcquireTerms, _options: unknown, resultOf: ResultOf<Lease, R>): Promise<R> {
    checkName(this.#name)
    return this.host.hold(this.#name, terms, resultOf)
  }
}
