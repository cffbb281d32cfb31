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
import { type Cancel, request } from '../contract/request.ts'
import type { LeaseRecord, NodeRecord, Pacing, Query, Store } from '../contract/store.ts'
import { DEFAULT_TTL, LONGEST_TRY, requestLimit } from '../contract/time.ts'
import { Acquiring, type ResultOf } from './acquirable.ts'
import type { Advice } from './advice/advice.ts'
import { Calls } from './calls.ts'
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
import type { OpenRenewer } from './renewer.ts'
import { Signals } from './signals.ts'
import { hasTickets, ticketName } from './tickets.ts'
import type { Tried, Work, WorkArguments } from './work.ts'

/** `Locks` without leadership and sharing. */
export class CoreLocks implements Leasing {
  readonly store: Store
  /** What calls, leadership and sharing need from these locks. */
  protected readonly host: Host
  protected readonly closing: Closing
  protected readonly family: Family
  readonly #leases = new List<HeldLease>()
  readonly #defaults: LocksDefaults
  readonly #owner: string

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
    const { clock, loopDelay } = environment
    this.store = store
    this.closing = new Closing(clock, this.#leases, this.family, !loopDelay)
    this.#defaults = { ...defaults }
    this.#owner = defaults.owner ?? `${hostname()}:${process.pid}:${randomId().slice(0, 6)}`
    this.family.join(this.#leases)
    const signals = new Signals()
    const core: Core = {
      ...environment,
      store,
      heartbeat,
      statistics,
      waiters,
      leases: this.#leases,
      heldLease: name => this.heldLease(name),
      onEnd: () => {
        if (!this.family.isHolding) statistics.pause()
        this.closing.checkIdle()
      },
      inBackground: withdrawal => this.closing.inBackground(withdrawal),
      onWait: () => this.closing.watch(),
    }
    this.host = {
      ...core,
      calls: new Calls(core, this.closing, this.family, signals),
      signals,
      closing: this.closing.signal,
      inspect: name => this.inspect(name),
      terms: (verb, options) => this.#terms(verb, options),
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
    const higher = await request(this.host.clock, this.#requestLimit(), ask)
    if (higher !== undefined) events.lease_broken.publish({ name, by, token: higher })
    return higher
  }

  async ping(options: PingOptions = {}): Promise<void> {
    checkKeys(options, pingKeys, 'ping')
    checkSignal(options.signal)
    return this.answered(options.signal, ping)
  }

  /** Runs `ask` until the signal aborts or these locks are closed. */
  protected answered(
    signal: AbortSignal | undefined,
    ask: (asker: Asker, cancel: Cancel) => Promise<void>,
  ): Promise<void> {
    return this.host.calls.ask(signal, cancel => ask({ ...this.host, owner: this.#owner }, cancel))
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
    const defaults = this.#defaults
    const heartbeat = options.heartbeat ?? defaults.heartbeat ?? true
    if (options.maxBlocked !== undefined && heartbeat !== 'thread')
      throw invalid("maxBlocked needs heartbeat: 'thread'")
    this.closing.assertOpen()
    return {
      ttl: options.ttl ?? defaults.ttl ?? DEFAULT_TTL,
      wait: isTry(verb) ? 0 : (options.wait ?? defaults.wait ?? Number.POSITIVE_INFINITY),
      maxWaiters: options.maxWaiters ?? defaults.maxWaiters ?? Number.POSITIVE_INFINITY,
      note: options.note ?? defaults.note ?? '',
      owner: options.owner ?? this.#owner,
      heartbeat,
      maxBlocked: options.maxBlocked ?? defaults.maxBlocked,
      maxHold: options.maxHold ?? defaults.maxHold,
      background: !runsWork(verb),
      signal: options.signal,
    }
  }

  #records(query: Query): AsyncIterable<LeaseRecord | NodeRecord> {
    this.closing.assertOpen()
    return inspect(this.host, query, this.#requestLimit())
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
    return this.host.calls.hold(this.#name, terms, resultOf)
  }
}
