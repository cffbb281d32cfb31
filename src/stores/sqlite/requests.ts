import { LeaseError } from '../../contract/errors.ts'
import { events } from '../../contract/events.ts'
import type { Clock } from '../../contract/time.ts'
import { closed } from '../shared/closed.ts'
import { failure, isBusy, isFull } from './failure.ts'
import { File } from './file.ts'
import type { Leases } from './leases.ts'

export interface Request<Answer> {
  /** Requests for one name keep their order. */
  readonly name?: string
  readonly signal: AbortSignal
  /** Milliseconds from now after which it is not carried out any more. */
  readonly limit: number
  /** The answer from reads alone; `undefined` if it takes a write. */
  readonly peek?: (leases: Leases, now: number) => Answer | undefined
  readonly write: (leases: Leases, now: number) => Answer
}

interface Entry {
  readonly request: Request<unknown>
  readonly made: number
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Requests carried out in one transaction: each takes about 20 us, so that the lock is held for 5 ms and an fsync. */
const BATCH = 256

/**
 * How connections of this thread are kept. A thread that may be stopped at any time opens the file only while a request
 * runs: Node crashed once when a worker was stopped while its file was open.
 */
export const connections: { brief: boolean } = { brief: false }

/** Milliseconds; the mean pause of a random one before the next try for the lock. A timer has steps of 1 ms. */
const PAUSE = 1.5

/**
 * Carries out requests on one file, all that are made in one turn of the event loop in one transaction. While others
 * have the lock it tries again and again, for as long as each request's own limit and signal let it; those made
 * meanwhile join.
 */
export class Requests {
  readonly #path: string
  readonly #clock: Clock
  readonly #afterWrite: () => void
  readonly #waiting = new Set<Entry>()
  #file: File | undefined
  #running = false
  #closed = false

  constructor(path: string, clock: Clock, afterWrite: () => void) {
    this.#path = path
    this.#clock = clock
    this.#afterWrite = afterWrite
  }

  add<Answer>(request: Request<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#closed) throw closed()
      const settle = resolve as (answer: unknown) => void
      this.#waiting.add({ request, made: this.#clock.now(), resolve: settle, reject })
      if (!this.#running) void this.#run()
    })
  }

  /** Reads at once if the file is open and nothing hinders; `undefined` otherwise. */
  look<T>(read: (leases: Leases, now: number) => T): T | undefined {
    try {
      return this.#file?.read(leases => read(leases, this.#now()))
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
      // Not a microtask: requests that follow on answers would keep the event loop from its timers for ever.
      await new Promise(resolve => setImmediate(resolve))
      this.#dropLate()
      const batch = [...this.#waiting].slice(0, BATCH)
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

  #carryOut(batch: Entry[]): void {
    const file = this.#connect()
    const writes = this.#peek(file, batch)
    if (writes.length === 0) return
    const settle = file.write(leases => {
      this.#dropLate() // this process may have been stopped on the way here
      const now = this.#now()
      return writes.filter(entry => this.#waiting.has(entry)).map(entry => this.#write(entry, leases, now))
    })
    for (const action of settle) action()
    this.#afterWrite()
  }

  /** Answers what needs no write, and so no lock either; the rest is returned. */
  #peek(file: File, batch: Entry[]): Entry[] {
    return file.read(leases => {
      const now = this.#now()
      const names = new Set<string>()
      return batch.filter(entry => {
        const { name, peek } = entry.request
        const answer = name !== undefined && names.has(name) ? undefined : peek?.(leases, now)
        if (answer !== undefined) this.#resolve(entry, answer)
        else if (name !== undefined) names.add(name)
        return answer === undefined
      })
    })
  }

  /** What is left to do once the transaction is committed. A request that is refused does not fail its neighbours. */
  #write(entry: Entry, leases: Leases, now: number): () => void {
    try {
      const answer = entry.request.write(leases, now)
      return () => this.#resolve(entry, answer)
    } catch (error) {
      if (!LeaseError.is(error)) throw error
      return () => this.#reject([entry], error)
    }
  }

  #connect(): File {
    if (this.#file && !this.#file.isCurrent) this.#disconnect()
    this.#file ??= new File(this.#path)
    return this.#file
  }

  #disconnect(): void {
    this.#file?.close()
    this.#file = undefined
  }

  #fail(batch: Entry[], error: unknown): void {
    if (!isFull(error)) this.#disconnect() // the next request starts afresh
    this.#reject(batch, failure(error, this.#path))
  }

  #dropLate(): void {
    const now = this.#clock.now()
    for (const entry of this.#waiting) {
      const { signal, limit } = entry.request
      if (signal.aborted) this.#reject([entry], signal.reason)
      else if (now >= entry.made + limit) this.#reject([entry], locked(this.#path, now - entry.made))
    }
  }

  #resolve(entry: Entry, answer: unknown): void {
    if (this.#waiting.delete(entry)) entry.resolve(answer)
  }

  #reject(entries: Entry[], error: unknown): void {
    for (const entry of entries) if (this.#waiting.delete(entry)) entry.reject(error)
  }

  #now(): number {
    return Math.floor(this.#clock.wall())
  }
}

function locked(path: string, elapsed: number): LeaseError {
  const file = JSON.stringify(path)
  const who = 'by another process, which may be stopped, or this process was stopped itself'
  return new LeaseError(
    'STORE_UNAVAILABLE',
    `${file} was locked for ${Math.round(elapsed)} ms ${who}; nothing was done`,
  )
}
