import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { LeaseError } from '../../src/index.ts'
import { known, locksOf, type Opening, type SharedLocks } from '../shared/clients.ts'
import { Holding, termOf } from '../shared/term.ts'
import { ExecutionError, ResourceLockedError } from './errors.ts'
import { attemptsOf, type Client, type ExecutionResult } from './execution.ts'
import { idOf, recordIds } from './ids.ts'
import { bind, holdingOf, Lock } from './lock.ts'
import { databaseOf, type RedlockSettings, retriesOf, type Settings, settingsOf, waitOf } from './settings.ts'
import { contextOf, type RedlockAbortSignal, type RedlockUsingContext, signalOf } from './using.ts'

/** What all clients have. */
type Readable = Client & { get(key: string): Promise<unknown> }

type Routine<T> = (signal: RedlockAbortSignal, context: RedlockUsingContext) => Promise<T>

const NO_QUORUM = 'The operation was unable to achieve a quorum during its retry window.'
const EXPIRED = 'Cannot extend an already-expired lock.'

/** Milliseconds. A client that is connected and waits this long for an answer had an outage. */
const SHORTEST_OUTAGE = 50

/** Milliseconds for which a call still asks after an outage. The connections of locks need some of it to come back. */
const RECONNECT = 3_000

/** What is held in this process, by the value of its lock: a lock may be made again by hand. */
const held = new Map<string, Holding>()

/**
 * Locks over one Redis, or over a majority of several, with the interface of redlock 5. Emits `error` for each client when
 * a call fails, or is tried again because the servers cannot be reached.
 */
export class Redlock extends EventEmitter {
  readonly clients: Set<Client>
  readonly settings: Required<Settings>
  readonly #own: Opening
  #hasQuit = false

  /** Throws if there is no client, or if scripts are given: locks are leases, and no script of redlock runs. */
  constructor(clients: Iterable<Client>, settings: RedlockSettings = {}, scripts: object = {}) {
    super()
    this.on('error', () => {}) // without a listener, Node would throw
    this.clients = new Set(clients)
    if (this.clients.size === 0) throw new Error('Redlock must be instantiated with at least one redis client.')
    if (Object.values(scripts).some(script => script !== undefined))
      throw new Error('Custom scripts are not supported: locks are leases of Holdfast, which has its own scripts.')
    this.settings = settingsOf(settings)
    const { prefix, nodeTimeout, maxTtl, trustRestarted, alongside } = settings
    this.#own = { prefix, nodeTimeout, maxTtl, trustRestarted, alongside, db: databaseOf(settings) }
  }

  /** Calls `quit()` of all clients. What is locked stays locked until it is released or expires. */
  async quit(): Promise<void> {
    this.#hasQuit = true
    known([...this.clients], this.#opening)?.retire()
    await Promise.all(
      Array.from(this.clients, client => ('quit' in client ? (client.quit as () => unknown)() : undefined)),
    )
  }

  /**
   * Locks all resources for `duration` ms, or none. Waits up to `retryCount` times `retryDelay`, then rejects
   * `ExecutionError`. Rejects `LeaseError` `INVALID_ARGUMENT` for names or clients that cannot be used.
   */
  acquire(resources: string[], duration: number, settings?: Settings): Promise<Lock> {
    return this.#acquire(resources, duration, settings, false)
  }

  /** Releases a lock. Rejects `ExecutionError` if it is no longer held, or if no answer came. */
  async release(lock: Lock, _settings?: Settings): Promise<ExecutionResult> {
    const start = Date.now()
    lock.expiration = 0
    const end = await held.get(lock.value)?.release()
    if (end === 'released') return { attempts: attemptsOf(this.clients, 1), start }
    if (end !== 'unknown') throw this.#failed(notHeld(lock, holdingOf(lock)))
    throw this.#failed(new LeaseError('OUTCOME_UNKNOWN', 'the release was not confirmed; the lock ends by itself'))
  }

  /**
   * A lock that replaces `existing`, and lasts for `duration` ms from now. While the servers cannot be reached, it tries
   * again for up to `retryCount` times `retryDelay`, but not after `existing` expires. Rejects `ExecutionError`.
   */
  async extend(existing: Lock, duration: number, settings?: Settings): Promise<Lock> {
    checkDuration(duration)
    if (existing.expiration < Date.now()) throw new ExecutionError(EXPIRED, [])
    const effective = settingsOf(settings ?? {}, this.settings)
    this.#checkExpiry(duration, effective)
    const holding = held.get(existing.value)
    if (!holding) throw this.#failed(notHeld(existing, holdingOf(existing)))
    const attempts = await this.#extend(existing, holding, duration, effective)
    existing.expiration = 0
    return this.#lock(existing.resources, existing.value, duration, holding, settings, attempts)
  }

  /**
   * Runs a routine under a lock that is renewed at a third of `duration`. Rejects `ExecutionError` if the lock was lost,
   * unless the routine rejects: then with that.
   */
  using<T>(resources: string[], duration: number, settings: Settings, routine?: Routine<T>): Promise<T>
  using<T>(resources: string[], duration: number, routine: Routine<T>): Promise<T>
  async using<T>(
    resources: string[],
    duration: number,
    settingsOrRoutine: undefined | Settings | Routine<T>,
    optionalRoutine?: Routine<T>,
  ): Promise<T> {
    checkDuration(duration)
    const settings = settingsOrRoutine && typeof settingsOrRoutine !== 'function' ? settingsOrRoutine : {}
    const routine = optionalRoutine ?? settingsOrRoutine
    if (typeof routine !== 'function') throw new Error('INVARIANT: routine is not a function.')
    if (settingsOf(settings, this.settings).automaticExtensionThreshold > duration - 100)
      throw new Error(
        'A lock `duration` must be at least 100ms greater than the `automaticExtensionThreshold` setting.',
      )

    const lock = await this.#acquire(resources, duration, settings, true)
    const { lease, first } = holdingOf(lock) as Holding
    const context = contextOf(lock, first)
    let result: T
    try {
      result = await routine(
        signalOf(lease, reason => this.#failed(reason)),
        context,
      )
    } catch (error) {
      await lease.release()
      throw error
    }
    await context.lock.release()
    return result
  }

  async #acquire(resources: string[], duration: number, settings: Settings = {}, isOpenEnded: boolean): Promise<Lock> {
    checkDuration(duration)
    const effective = settingsOf(settings, this.settings)
    this.#checkExpiry(duration, effective)
    const retryDelay = Math.max(effective.retryDelay, 1)
    const wait = waitOf(effective)
    let started = performance.now()
    let end = started + wait
    let isPatient = this.clients.size === 1
    for (;;) {
      const left = started + wait - performance.now()
      const wasDown = this.#isDown()
      try {
        const holding = await this.#hold(resources, duration, Math.max(left, 0), isOpenEnded)
        const value = idOf(holding.first)
        held.set(value, holding)
        void holding.lease.ended.then(() => held.delete(value))
        const retries = Math.floor((performance.now() - started) / retryDelay)
        return this.#lock(resources, value, duration, holding, settings, 1 + Math.min(retries, retriesOf(effective)))
      } catch (error) {
        if (!LeaseError.is(error) || error.code === 'INVALID_ARGUMENT' || error.code === 'DRIVER_MISSING') throw error
        const attempts = 1 + retriesOf(effective)
        if (error.code === 'BUSY') throw this.#failed(busy(resources, error), attempts)
        if (!error.retryable) throw this.#failed(error, attempts)
        if (isPatient && (await this.#outlastsOutage(String(resources[0]), wasDown || this.#isDown()))) {
          isPatient = false
          started = performance.now()
          end = started + Math.max(wait, RECONNECT)
        }
        if (performance.now() + retryDelay >= end) throw this.#failed(error, attempts)
        this.#emit(error)
        await sleep(retryDelay)
      }
    }
  }

  /** Resolves to the number of attempts. */
  async #extend(existing: Lock, holding: Holding, duration: number, settings: Required<Settings>): Promise<number> {
    const retryDelay = Math.max(settings.retryDelay, 1)
    const end = performance.now() + waitOf(settings)
    for (let attempts = 1; ; attempts += 1) {
      if (holding.lease.remaining === 0) throw this.#failed(notHeld(existing, holding)) // lost, or released meanwhile
      try {
        await holding.extend(duration)
        return attempts
      } catch (error) {
        if (LeaseError.is(error, 'LEASE_LOST')) throw this.#failed(notHeld(existing, holding))
        // It was released while it was extended. In redlock, whose requests keep their order, both calls succeed.
        if (LeaseError.is(error, 'CLOSED') && (await holding.lease.ended) === 'released') return attempts
        const isLast = performance.now() + retryDelay >= end || Date.now() + retryDelay >= existing.expiration
        if (isLast || !LeaseError.is(error) || !error.retryable) throw this.#failed(error, 1 + retriesOf(settings))
        this.#emit(error)
        await sleep(retryDelay)
      }
    }
  }

  async #hold(resources: string[], duration: number, wait: number, isOpenEnded: boolean): Promise<Holding> {
    const shared = this.#open()
    recordIds()
    const { guarantees } = shared.locks.store
    const { ttl } = termOf(duration, guarantees)
    const [only] = resources
    const options = { ttl, wait, heartbeat: isOpenEnded }
    const acquiring =
      resources.length === 1 && only !== undefined
        ? shared.locks.acquire(only, options)
        : shared.locks.all(resources).acquire(options)
    void shared.use(acquiring.then(lease => lease.ended))
    const holding = new Holding(await acquiring, guarantees, isOpenEnded)
    if (!isOpenEnded) holding.last(duration)
    return holding
  }

  /** Throws for a duration that Redis would refuse. */
  #checkExpiry(duration: number, settings: Required<Settings>): void {
    if (duration > 0 && duration < Infinity) return
    const error = new LeaseError('INVALID_ARGUMENT', `a duration must be 1 ms or more, and finite, not ${duration}`)
    throw this.#failed(error, 1 + retriesOf(settings))
  }

  /** Does the only client, of ioredis or node-redis, know that it is not connected? */
  #isDown(): boolean {
    const [client] = this.clients
    const { status, isReady = true } = client as { status?: unknown; isReady?: unknown }
    return status === undefined ? !isReady : status !== 'ready'
  }

  /** Waits for an answer as long as the client retries by its own options. Was there an outage that has ended? */
  async #outlastsOutage(resource: string, wasDown: boolean): Promise<boolean> {
    const [client] = this.clients
    if (!client || !('get' in client)) return false
    const asked = performance.now()
    // In a Cluster, it asks the server of the resource.
    const isAnswered = await (client as Readable).get(resource).then(
      () => true,
      () => false,
    )
    return isAnswered && (wasDown || performance.now() - asked > SHORTEST_OUTAGE)
  }

  #open(): SharedLocks {
    if (this.#hasQuit) throw new LeaseError('CLOSED', 'quit() was called: make a new Redlock, over new clients')
    // At the first use, because the client may select its database after this object was made.
    return locksOf([...this.clients], this.#opening)
  }

  get #opening(): Opening {
    return { ...this.#own, drift: this.#drift }
  }

  /** Of several servers, the share that the store subtracts. */
  get #drift(): number | undefined {
    return this.clients.size > 1 ? Math.min(Math.max(this.settings.driftFactor, 0.01), 0.5) : undefined
  }

  /** A lock that was granted just now. */
  #lock(
    resources: string[],
    value: string,
    duration: number,
    holding: Holding,
    settings: Settings | undefined,
    attempts: number,
  ): Lock {
    const drift = Math.round(Math.max(settings?.driftFactor ?? this.settings.driftFactor, 0.01) * duration) + 2
    const sent = Math.min(Date.now() - Math.round(holding.age(duration, this.#drift)), Date.now())
    const expiration = sent + duration - drift
    return bind(new Lock(this, resources, value, attemptsOf(this.clients, attempts), expiration, settings), holding)
  }

  /** Emits the error for each client, and returns what a call rejects with. */
  #failed(error: unknown, attempts = 1): ExecutionError {
    const reason = error instanceof Error ? error : new Error(String(error))
    this.#emit(reason)
    const cause = reason instanceof ResourceLockedError ? reason.cause : reason
    return new ExecutionError(NO_QUORUM, attemptsOf(this.clients, attempts, reason), cause ? { cause } : undefined)
  }

  #emit(error: Error): void {
    for (const _ of this.clients) this.emit('error', error)
  }
}

function busy(resources: readonly string[], cause: LeaseError): ResourceLockedError {
  return new ResourceLockedError(applied(resources), { cause })
}

function notHeld({ resources }: Lock, holding: Holding | undefined): ResourceLockedError {
  const reason = holding?.lease.signal.aborted ? holding.lease.signal.reason : undefined
  return new ResourceLockedError(applied(resources), { cause: reason })
}

function applied({ length }: readonly string[]): string {
  return `The operation was applied to: 0 of the ${length} requested resources.`
}

function checkDuration(duration: number): void {
  if (Math.floor(duration) !== duration) throw new Error('Duration must be an integer value in milliseconds.')
}
