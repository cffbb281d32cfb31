import { LeaseError } from '../../contract/errors.ts'
import { events } from '../../contract/events.ts'
import type { Clock } from '../../contract/time.ts'
import { closed } from '../wire/failure.ts'
import { Connection } from './connection.ts'
import { failure, isBusy, isFull } from './failure.ts'
import { Leases } from './leases.ts'
import type { Rows } from './rows.ts'

export interface Request<Answer> {
  /** The name that the request is for. Requests for one name keep their order. */
  readonly name?: string
  readonly signal: AbortSignal
  /** Milliseconds from now after which the request is stale and no longer carried out. */
  readonly limit: number
  /** The answer, if it needs only reads. `undefined`: the request needs a write. */
  readonly peek?: (leases: Leases) => Answer | undefined
  readonly write: (leases: Leases) => Answer
}

interface Pending extends Request<unknown> {
  /** The time when the request becomes stale. */
  readonly until: number
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: unknown) => void
}

/** The largest number of requests in one transaction. Each takes about 20 us, so the lock is held for 5 ms and an fsync. */
const LARGEST = 256

/**
 * The way in which this thread keeps its connections open. A thread that may be terminated at any time opens the file only
 * during a request: Node once crashed when a worker was terminated while the file was open.
 */
export const connections: { brief: boolean } = { brief: false }

/** The mean of the random pause before the next attempt to lock, in milliseconds. Timers have a resolution of 1 ms. */
const PAUSE = 1.5

/**
 * Carries out requests on one file. Requests of one turn of the event loop share a transaction. While another process has
 * the lock, they are retried, each until its own limit or signal. Later requests join them.
 */
export class Requests {
  readonly #path: string
  readonly #allowSharedFolder: boolean
  readonly #clock: Clock
  readonly #afterWrite: () => void
  readonly #waiting = new Set<Pending>()
  #connection: Connection | undefined
  #running = false
  #closed = false

  constructor(path: string, allowSharedFolder: boolean, clock: Clock, afterWrite: () => void) {
    this.#path = path
    this.#allowSharedFolder = allowSharedFolder
    this.#clock = clock
    this.#afterWrite = afterWrite
  }

  add<Answer>(request: Request<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#closed) throw closed()
      const settle = resolve as (answer: unknown) => void
      this.#waiting.add({ ...request, until: this.#clock.now() + request.limit, resolve: settle, reject })
      if (!this.#running) void this.#run()
    })
  }

  /** Reads at once. `undefined`: the file is not open, or cannot be read now. */
  tryRead<T>(read: (leases: Leases) => T): T | undefined {
    try {
      return this.#connection?.read(rows => read(this.#leases(rows)))
    } catch {
      return undefined
    }
  }

  close(): void {
    this.#closed = true
    this.#reject([...this.#waiting], closed())
    this.#disconnect()
  }

  async #run(): Promise<void> {
    this.#running = true
    while (this.#waiting.size > 0) {
      // This is not a microtask: requests that follow answers would starve the timers of the event loop.
      await new Promise(resolve => setImmediate(resolve))
      this.#dropStale()
      const batch = [...this.#waiting].slice(0, LARGEST)
      if (batch.length === 0) continue
      try {
        this.#carryOut(batch)
        if (events.batch_sent.hasSubscribers) events.batch_sent.publish({ size: batch.length })
      } catch (error) {
        if (isBusy(error)) await new Promise<void>(resolve => this.#clock.after(2 * PAUSE * Math.random(), resolve))
        else this.#fail(batch, error)
      }
    }
    if (connections.brief) this.#disconnect()
    this.#running = false
  }

  #carryOut(batch: Pending[]): void {
    const connection = this.#connect()
    const writes = this.#peek(connection, batch)
    if (writes.length === 0) return
    const settle = connection.write(rows => {
      this.#dropStale() // this process may have been paused before
      const leases = this.#leases(rows)
      const actions = writes.filter(request => this.#waiting.has(request)).map(request => this.#write(request, leases))
      leases.save()
      return actions
    })
    for (const action of settle) action()
    this.#afterWrite()
  }

  /** Answers the requests that need no write, and so no lock. Returns the other requests. */
  #peek(connection: Connection, batch: Pending[]): Pending[] {
    return connection.read(rows => {
      const leases = this.#leases(rows)
      const names = new Set<string>()
      return batch.filter(request => {
        const { name, peek } = request
        const answer = name !== undefined && names.has(name) ? undefined : peek?.(leases)
        if (answer !== undefined) this.#resolve(request, answer)
        else if (name !== undefined) names.add(name)
        return answer === undefined
      })
    })
  }

  /**
   * Carries out a request. Returns a function that settles it once the transaction is committed. A refused request does not
   * fail the others.
   */
  #write(request: Pending, leases: Leases): () => void {
    try {
      const answer = request.write(leases)
      return () => this.#resolve(request, answer)
    } catch (error) {
      if (!LeaseError.is(error)) throw error
      return () => this.#reject([request], error)
    }
  }

  #connect(): Connection {
    if (this.#connection && !this.#connection.isCurrent) this.#disconnect()
    this.#connection ??= new Connection(this.#path, this.#allowSharedFolder)
    return this.#connection
  }

  #disconnect(): void {
    this.#connection?.close()
    this.#connection = undefined
  }

  #fail(batch: Pending[], error: unknown): void {
    if (!isFull(error)) this.#disconnect() // the next request opens the file again
    this.#reject(batch, failure(error, this.#path))
  }

  #dropStale(): void {
    const now = this.#clock.now()
    for (const request of this.#waiting) {
      const { signal, limit, until } = request
      if (signal.aborted) this.#reject([request], signal.reason)
      else if (now >= until) this.#reject([request], locked(this.#path, now - until + limit))
    }
  }

  #resolve(request: Pending, answer: unknown): void {
    if (this.#waiting.delete(request)) request.resolve(answer)
  }

  #reject(requests: Pending[], error: unknown): void {
    for (const request of requests) if (this.#waiting.delete(request)) request.reject(error)
  }

  /** The leases now. Their time is read in the transaction. */
  #leases(rows: Rows): Leases {
    return new Leases(rows, Math.floor(this.#clock.wall()))
  }
}

function locked(path: string, elapsed: number): LeaseError {
  const file = JSON.stringify(path)
  const cure = 'if that or this process is paused, resume or end it'
  return new LeaseError(
    'STORE_UNAVAILABLE',
    `another process locked ${file} for ${Math.round(elapsed)} ms, and nothing was done: ${cure}`,
  )
}
