import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { LeaseError } from '../../contract/errors.ts'
import { events } from '../../contract/events.ts'
import { request } from '../../contract/request.ts'
import type { Claim } from '../../contract/store.ts'
import { type Clock, LONGEST_REQUEST, margin } from '../../contract/time.ts'
import type { Acquired } from '../acquire.ts'
import type { Pulse } from '../advice/pulse.ts'
import type { RenewalOptions, Renewals, Renewer } from '../renewals.ts'
import { Liveness, Proof } from './liveness.ts'
import { type Assignment, leaseError, type News, type Order } from './messages.ts'
import { ThreadRenewals } from './renewals.ts'
import { SharedTerm } from './term.ts'

/** Milliseconds that a worker may take to start: 30 to 150 are usual. */
const START_LIMIT = 10_000

/**
 * The worker thread that sends the renewals of one `Locks`, as the main thread sees it. It is started by the first
 * lease that wants it, keeps no process alive, and ends at `close`. Should it end before, the leases that it renewed
 * are renewed by the main thread, and the next lease that wants it starts another.
 */
export class HeartbeatThread implements Renewer {
  readonly clock: Clock
  readonly pulse: Pulse
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

  constructor(url: string, clock: Clock, pulse: Pulse) {
    this.#url = url
    this.clock = clock
    this.pulse = pulse
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

  renewals(claim: Claim, { grant, sent }: Acquired, options: RenewalOptions): Renewals {
    const { clock } = this
    const { livenessLimit, maxHold = Number.POSITIVE_INFINITY } = options
    const term = new SharedTerm()
    term.write(() => sent + grant.ttl - margin(grant.ttl) - clock.now())
    term.read() // nothing new to the lease, which knows it
    const left = sent + maxHold - clock.now()
    const order = { kind: 'hold', claim, token: grant.token, term: term.memory, livenessLimit, maxHold: left } as const
    return new ThreadRenewals(this, term, order)
  }

  async close(): Promise<void> {
    this.#end = new LeaseError('CLOSED', 'these locks were closed')
    const worker = this.#worker
    if (!worker) return
    // Asked first: a thread that is stopped from outside leaves its file and its connections as they are.
    worker.postMessage('end')
    const exit = once(worker, 'exit')
    await request(this.clock, LONGEST_REQUEST, () => exit).catch(() => worker.terminate())
  }

  begin(order: Extract<Order, { kind: 'hold' }>, renewals: ThreadRenewals): void {
    const { id, ttl } = order.claim
    this.#renewals.set(id, renewals)
    this.#proof.keep(order.livenessLimit ?? ttl)
    if (!this.#post(order)) this.#hand(ended())
  }

  /** Resolves when the worker has extended a lease, to what went wrong if anything did. */
  extend(id: string, ttl: number, signal: AbortSignal): Promise<LeaseError | undefined> {
    return new Promise(resolve => {
      this.#count += 1
      const call = this.#count
      this.#calls.set(call, resolve)
      signal.addEventListener('abort', () => this.#calls.delete(call), { once: true })
      this.#proof.give() // this may be the first that is done after the event loop was blocked
      if (!this.#post({ kind: 'extend', id, ttl, call })) resolve(this.#end ?? ended())
    })
  }

  annotated(id: string, note: string): void {
    this.#post({ kind: 'annotated', id, note })
  }

  /** The renewals of that lease will hear that it is done. False: there is nobody to do it. */
  stop(id: string): boolean {
    return this.#post({ kind: 'stop', id })
  }

  #post(order: Order): boolean {
    this.#worker?.postMessage(order)
    return this.#worker !== undefined
  }

  #start(): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      if (this.#end) throw this.#end
      const worker = spawn({ url: this.#url, liveness: this.#liveness.memory, pulse: this.pulse.share() })
      this.#worker = worker
      let cause: unknown
      const onEnd = (): void => {
        stopTimer()
        reject(startError(cause))
        if (this.#worker === worker) this.#onEnd(cause)
      }
      // It also keeps the process alive for whoever waits.
      const stopTimer = this.clock.after(START_LIMIT, () => {
        cause = new Error(`it was not ready within ${START_LIMIT} ms`)
        onEnd()
        void worker.terminate()
      })
      worker.on('error', error => {
        cause = error
      })
      worker.on('exit', onEnd)
      worker.on('message', (news: News) => {
        if (news.kind !== 'ready') return this.#hear(news)
        stopTimer()
        resolve()
      })
      worker.unref() // last: a listener of messages refs it again
    })
  }

  #hear(news: Exclude<News, { kind: 'ready' }>): void {
    if (news.kind === 'batch') events.batch_sent.publish(news.event)
    else if (news.kind === 'ghost') events.ghost_refused.publish(news.event)
    else if (news.kind === 'extended') {
      this.#calls.get(news.call)?.(news.error && leaseError(news.error))
      this.#calls.delete(news.call)
    } else {
      const renewals = this.#renewals.get(news.id)
      if (news.kind === 'stopped') this.#renewals.delete(news.id)
      renewals?.hear(news)
    }
  }

  #onEnd(cause: unknown): void {
    this.#worker = undefined
    this.#starting = undefined
    this.#hand(this.#end ?? ended(cause))
  }

  /** Gives all leases to the main thread. */
  #hand(error: LeaseError): void {
    this.#proof.stop()
    for (const answer of this.#calls.values()) answer(error)
    this.#calls.clear()
    const renewals = [...this.#renewals.values()]
    this.#renewals.clear()
    for (const each of renewals) each.fail(error)
  }
}

function spawn(workerData: Assignment): Worker {
  // Beside this file in the sources; in the package this file is part of one at the top of `dist`.
  const path = import.meta.url.endsWith('.ts') ? './worker.ts' : './thread/worker.js'
  // What the program itself was started with (--import, --input-type, --test) is not for this thread.
  const options = { workerData, name: 'holdfast heartbeat', execArgv: [] }
  try {
    return new Worker(new URL(path, import.meta.url), options)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_ACCESS_DENIED') throw startError(cause)
    const message = "heartbeat: 'thread' needs a worker thread: start Node with --allow-worker, or use heartbeat: true"
    throw new LeaseError('INVALID_ARGUMENT', message, { cause })
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
