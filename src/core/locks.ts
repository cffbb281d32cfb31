import { hostname } from 'node:os'
import { checkKeys, checkName, checkText, checkWait, invalid } from '../contract/check.ts'
import { LeaseError } from '../contract/errors.ts'
import { events } from '../contract/events.ts'
import type { Lease } from '../contract/lease.ts'
import { List } from '../contract/list.ts'
import { isLease, type NameState, stateOf } from '../contract/record.ts'
import { Cancel, request } from '../contract/request.ts'
import type { Claim, LeaseRecord, NodeRecord, Query, Store } from '../contract/store.ts'
import { LONGEST_REQUEST, LONGEST_TRY, requestLimit } from '../contract/time.ts'
import { LONGEST_DELAY } from '../contract/timers.ts'
import { Acquisition } from './acquisition.ts'
import type { Advice } from './advice/advice.ts'
import { RenewalStatistics } from './advice/renewal-statistics.ts'
import { Closing } from './closing.ts'
import { type Core, type CoreEnvironment, leaseOn } from './core.ts'
import { Heartbeat } from './heartbeat.ts'
import { HeldLease } from './held-lease.ts'
import { inspect } from './inspection.ts'
import type { Leasing } from './leasing.ts'
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
import type { OpenRenewer, Renewer } from './renewer.ts'
import { Signals } from './signals.ts'
import { withdraw } from './withdraw.ts'

const DEFAULT_TTL = 10_000

/** `Locks` without the recipes. */
export class CoreLocks implements Leasing {
  readonly store: Store
  protected readonly core: Core
  protected readonly closing: Closing
  readonly #leases = new List<HeldLease>()
  readonly #defaults: LocksDefaults
  readonly #owner: string
  readonly #openRenewer: OpenRenewer | undefined
  #renewer: Promise<Renewer> | undefined
  readonly #signals = new Signals()
  readonly #statistics: RenewalStatistics

  /** `openRenewer` starts the thread of `heartbeat: 'thread'`. Without it that option is refused. */
  constructor(store: Store, defaults: LocksDefaults, environment: CoreEnvironment, openRenewer?: OpenRenewer) {
    if (typeof store?.acquire !== 'function')
      throw invalid('createLocks needs a store, such as sqlite(path) or redis(client); for a URL use connect(url)')
    checkKeys(defaults, defaultKeys, 'createLocks')
    checkOptions(defaults, store, openRenewer !== undefined, 'the default ttl of these locks')
    const { clock, random, loopDelay } = environment
    this.store = store
    this.closing = new Closing(clock, this.#leases)
    this.#openRenewer = openRenewer
    this.#defaults = { ...defaults }
    this.#owner = defaults.owner ?? `${hostname()}:${process.pid}:${randomId().slice(0, 6)}`
    this.#statistics = new RenewalStatistics(clock, store.guarantees?.shortestTtl ?? 0, loopDelay)
    this.core = {
      ...environment,
      store,
      heartbeat: new Heartbeat(clock, random),
      statistics: this.#statistics,
      leases: this.#leases,
      onEnd: () => {
        if (this.#leases.size === 0) this.#statistics.pause()
        this.closing.checkIdle()
      },
      inBackground: withdrawal => this.closing.inBackground(withdrawal),
    }
  }

  acquire(name: string, options: AcquireOptions = {}): Promise<Lease> {
    return this.#acquire('acquire', name, options, acquireKeys, timedOut, handleOf)
  }

  async tryAcquire(name: string, options: TryOptions = {}): Promise<Lease | undefined> {
    return this.#acquire('tryAcquire', name, options, tryKeys, isBusy, handleOf)
  }

  async using<Result>(
    name: string,
    work: (lease: Lease) => PromiseLike<Result>, // JavaScript may return a plain value
    options: AcquireOptions = {},
  ): Promise<Result> {
    if (typeof work !== 'function')
      throw invalid('using needs the work as its second argument: a function of the lease')
    const lease = await this.#acquire('using', name, options, acquireKeys, timedOut, itself)
    const stop = this.#signals.onAbort(options.signal, reason => lease.abort(reason))
    this.closing.beginBody()
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
      this.closing.endBody()
      lost = await ending
    }
    if (lost) throw new LeaseError(lost.code, lost.message, { lease: name, cause: lost, result })
    return result
  }

  async inspect(name: string): Promise<NameState> {
    checkName(name)
    const records: (LeaseRecord | NodeRecord)[] = []
    for await (const record of this.#records({ name })) records.push(record)
    return stateOf(name, records)
  }

  async *list(prefix = ''): AsyncIterable<LeaseRecord> {
    checkText(prefix, 'the prefix of names')
    for await (const record of this.#records({ prefix })) if (isLease(record)) yield record
  }

  async break(name: string, by: string = this.#owner): Promise<bigint | undefined> {
    checkName(name)
    checkText(by, 'by')
    this.closing.assertOpen()
    const token = await request(this.core.clock, this.#requestLimit(), signal => this.store.break(name, by, signal))
    if (token !== undefined) events.lease_broken.publish({ name, by, token })
    return token
  }

  advice(): Advice {
    return this.#statistics.advice()
  }

  async close(options: CloseOptions = {}): Promise<void> {
    checkKeys(options, closeKeys, 'close')
    const { grace = 5_000 } = options
    checkWait(grace, 'grace')
    return this.closing.close(grace, async () => {
      await (await this.#renewer)?.close()
      // If the store cannot be closed, nobody could do anything about it.
      await request(this.core.clock, LONGEST_REQUEST, async () => this.store[Symbol.asyncDispose]()).catch(() => {})
    })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** The lease on `name` that is held here. */
  protected heldLease(name: string): HeldLease | undefined {
    return leaseOn(name, this.#leases)
  }

  /** `otherwise` decides what to do if the name was not acquired in time. `found` selects what the caller gets. */
  async #acquire<Found, Otherwise>(
    verb: 'acquire' | 'tryAcquire' | 'using',
    name: string,
    options: AcquireOptions,
    known: ReadonlySet<string>,
    otherwise: (acquisition: Acquisition, claim: Claim) => Otherwise,
    found: (lease: HeldLease) => Found,
  ): Promise<Found | Otherwise> {
    checkKeys(options, known, verb)
    checkName(name)
    checkOptions(options, this.store, this.#openRenewer !== undefined)
    this.closing.assertOpen()
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
    const acquisition = new Acquisition(this.core, claim, limit, cancel)
    const starting =
      heartbeat === 'thread'
        ? request(this.core.clock, LONGEST_DELAY, () => this.#startRenewer(), { cancel })
        : undefined
    const acquiring = starting ? starting.then(() => acquisition.run()) : acquisition.run()
    const wait = this.closing.waits.add({ cancel, acquiring })
    try {
      const acquired = await acquiring
      const renewer = starting && (await starting)
      if (!acquired) return otherwise(acquisition, claim)
      if (cancel.cancelled) this.closing.inBackground(withdraw(this.core, claim, acquired.unsettled)) // in this turn
      cancel.throwIfCancelled()
      const holdOptions = { heartbeat: heartbeat !== false, background, maxHold, livenessLimit }
      const lease = renewer
        ? renewer.hold(this.core, claim, acquired, holdOptions)
        : new HeldLease(this.core, claim, acquired, holdOptions)
      const { waited, requests } = acquired
      // Last, because a listener may release the lease or close these locks.
      if (events.lease_acquired.hasSubscribers)
        events.lease_acquired.publish({ id: claim.id, lease: lease.handle, waited, requests })
      return found(lease)
    } catch (error) {
      if (events.acquire_failed.hasSubscribers) events.acquire_failed.publish({ id: claim.id, name, owner, error })
      throw error
    } finally {
      stop()
      this.closing.waits.remove(wait)
    }
  }

  /** Has its own limit. Only the first lease that needs the thread waits for it. */
  async #startRenewer(): Promise<Renewer | undefined> {
    this.#renewer ??= this.#openRenewer?.(this.#statistics)
    const renewer = await this.#renewer
    await renewer?.ready()
    return renewer
  }

  #records(query: Query): AsyncIterable<LeaseRecord | NodeRecord> {
    this.closing.assertOpen()
    return inspect(this.core, query, this.#requestLimit())
  }

  #requestLimit(): number {
    return Math.min(requestLimit(this.#defaults.ttl ?? DEFAULT_TTL), LONGEST_TRY)
  }
}

function handleOf({ handle }: HeldLease): Lease {
  return handle
}

function itself(lease: HeldLease): HeldLease {
  return lease
}

function timedOut(acquisition: Acquisition): never {
  throw acquisition.timeout()
}

/** The event has the error that `acquire` throws. Nobody else needs it. */
function isBusy(acquisition: Acquisition, { id, name, owner }: Claim): undefined {
  if (events.acquire_failed.hasSubscribers)
    events.acquire_failed.publish({ id, name, owner, error: acquisition.timeout() })
}

/** Did the work fail because it was aborted? Many functions throw an AbortError of their own instead of the reason. */
function isAbort(error: unknown, reason: unknown): boolean {
  return error === reason || (error instanceof Error && (error.name === 'AbortError' || error.cause === reason))
}
