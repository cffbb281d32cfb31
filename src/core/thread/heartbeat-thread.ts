import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { LeaseError } from '../../contract/errors.ts'
import { events } from '../../contract/events.ts'
import { within } from '../../contract/request.ts'
import { inRootContext } from '../../contract/root-context.ts'
import type { Claim } from '../../contract/store.ts'
import { type Clock, LONGEST_REQUEST } from '../../contract/time.ts'
import type { Acquired } from '../acquisition.ts'
import type { RenewalStatistics } from '../advice/renewal-statistics.ts'
import type { Core } from '../core.ts'
import type { HeldLease } from '../held-lease.ts'
import type { HoldTerms } from '../options.ts'
import type { Renewer } from '../renewer.ts'
import { SharedDisruptions, shareStatistics } from './disruptions.ts'
import { Liveness, Proof } from './liveness.ts'
import { type Command, idOf, leaseError, type Notification, type WorkerInput } from './messages.ts'
import { type Extension, ThreadRenewals, type WorkerLink } from './thread-renewals.ts'

/** Milliseconds that a worker may take to start. It usually takes 30 to 150. */
const START_LIMIT = 10_000

/**
 * The worker thread that renews leases of one `Locks`, as the main thread sees it. The first lease that needs it starts
 * it. It does not keep the process alive, and ends at `close`. If it ends earlier, the main thread renews its leases, and
 * the next lease that needs it starts another one.
 */
export class HeartbeatThread implements Renewer, WorkerLink {
  readonly #clock: Clock
  readonly #statistics: RenewalStatistics
  /** The disruptions of all workers, which run one after the other. */
  readonly #disruptions = new SharedDisruptions()
  readonly #script: URL
  readonly #url: string
  readonly #liveness = new Liveness()
  readonly #proof: Proof
  readonly #renewals = new Map<string, ThreadRenewals>()
  /** Extensions that wait for their answer. */
  readonly #calls = new Map<number, (error: LeaseError | undefined) => void>()
  #count = 0
  #worker: Worker | undefined
  #starting: Promise<void> | undefined
  #end: LeaseError | undefined

  /** `script`: the module that the worker runs, with `runWorker`. `url`: the URL of the store that it opens. */
  constructor(script: URL, url: string, clock: Clock, statistics: RenewalStatistics) {
    this.#script = script
    this.#url = url
    this.#clock = clock
    this.#statistics = statistics
    this.#proof = new Proof(clock, this.#liveness, () => this.#renewals.size > 0)
  }

  async ready(): Promise<void> {
    const starting = this.#starting ?? this.#start()
    this.#starting = starting
    try {
      await starting
    } catch (error) {
      if (this.#starting === starting) this.#starting = undefined
      throw error
    }
  }

  get blocked(): number {
    return this.#proof.blocked
  }

  hold(core: Core, claim: Claim, acquired: Acquired, terms: HoldTerms): HeldLease {
    const renewals = new ThreadRenewals(this, core, claim, acquired, terms)
    this.#renewals.set(idOf(claim), renewals)
    this.#proof.keep(terms.maxBlocked ?? claim.ttl)
    if (!this.#worker) this.#handOver(ended())
    return renewals.lease
  }

  async close(): Promise<void> {
    this.#end = new LeaseError('CLOSED', 'these locks were closed')
    const worker = this.#worker
    if (!worker) return
    // Not terminated at once, so that the worker closes its file and its connections.
    worker.postMessage('end')
    const terminate = (): Promise<unknown> => worker.terminate()
    await within(this.#clock, LONGEST_REQUEST, once(worker, 'exit'), terminate).catch(terminate)
  }

  extend({ id, ttl, from, limit }: Extension, signal: AbortSignal): Promise<LeaseError | undefined> {
    return new Promise(resolve => {
      this.#count += 1
      const call = this.#count
      const giveUp = (): void => {
        if (this.#calls.delete(call)) this.send({ kind: 'keep', id, ttl: from })
      }
      this.#calls.set(call, resolve)
      signal.addEventListener('abort', giveUp, { once: true })
      this.#proof.keep(limit) // gives a proof, because the event loop may have been blocked until now
      if (this.send({ kind: 'extend', id, ttl, from, call })) return
      this.#calls.delete(call)
      resolve(this.#end ?? ended())
    })
  }

  send(command: Command): boolean {
    this.#worker?.postMessage(command)
    return this.#worker !== undefined
  }

  #start(): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      if (this.#end) throw this.#end
      const worker = this.#spawn()
      this.#worker = worker
      let cause: unknown
      const onEnd = (): void => {
        stopTimer()
        reject(startError(cause))
        if (this.#worker === worker) this.#onEnd(cause)
      }
      // The timer also keeps the process alive while a call waits for the worker.
      const stopTimer = this.#clock.after(START_LIMIT, () => {
        cause = new Error(`it was not ready within ${START_LIMIT} ms`)
        onEnd()
        void worker.terminate()
      })
      worker.on('error', error => {
        cause = error
      })
      worker.on('exit', onEnd)
      worker.on('message', (notification: Notification) => {
        if (notification.kind !== 'ready') return this.#receive(notification)
        stopTimer()
        resolve()
      })
      worker.unref() // last: a message listener refs it again
    })
  }

  #receive(notification: Exclude<Notification, { kind: 'ready' }>): void {
    if (notification.kind === 'batch') events.batch_sent.publish(notification.event)
    else if (notification.kind === 'refused') events.stale_request_refused.publish(notification.event)
    else if (notification.kind === 'extended') {
      this.#calls.get(notification.call)?.(notification.error && leaseError(notification.error))
      this.#calls.delete(notification.call)
    } else {
      const renewals = this.#renewals.get(notification.id)
      if (notification.kind === 'stopped') this.#renewals.delete(notification.id)
      renewals?.receive(notification)
      if (notification.kind === 'slow' && renewals && events.ttl_too_short.hasSubscribers)
        this.#statistics.warn(renewals.lease.handle)
    }
  }

  #onEnd(cause: unknown): void {
    this.#worker = undefined
    this.#starting = undefined
    this.#handOver(this.#end ?? ended(cause))
  }

  /** Makes the main thread renew all leases from now on. */
  #handOver(error: LeaseError): void {
    this.#proof.stop()
    for (const answer of this.#calls.values()) answer(error)
    this.#calls.clear()
    const renewals = [...this.#renewals.values()]
    this.#renewals.clear()
    for (const each of renewals) each.takeOver(error)
  }

  #spawn(): Worker {
    const workerData: WorkerInput = {
      url: this.#url,
      liveness: this.#liveness.memory,
      statistics: shareStatistics(this.#statistics, this.#disruptions),
    }
    // Options of the program itself (--import, --input-type, --test) are not for the worker.
    const options = { workerData, name: 'holdfast heartbeat', execArgv: [] }
    try {
      return inRootContext(() => new Worker(this.#script, options))
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== 'ERR_ACCESS_DENIED') throw startError(cause)
      const message =
        "heartbeat: 'thread' needs a worker thread: start Node with --allow-worker, or use heartbeat: true"
      throw new LeaseError('INVALID_ARGUMENT', message, { cause })
    }
  }
}

function startError(cause: unknown): LeaseError {
  const message = `the heartbeat thread could not be started${because(cause)}; heartbeat: true needs none`
  return new LeaseError('STORE_UNAVAILABLE', message, { cause })
}

function ended(cause?: unknown): LeaseError {
  const message = `the heartbeat thread has ended${because(cause)}; the main thread renews its leases`
  return new LeaseError('STORE_UNAVAILABLE', message, { cause })
}

function because(cause: unknown): string {
  return cause instanceof Error ? `: ${cause.message}` : ''
}
