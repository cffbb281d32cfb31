import { events } from '../../contract/events.ts'
import { inRootContext } from '../../contract/root-context.ts'

interface Entry {
  /** A signal that aborts when nobody waits for the entry any more. */
  readonly signal: AbortSignal
  reject(reason: unknown): void
}

export interface BatchOptions<Own> {
  /** The largest number of entries sent at once. */
  readonly limit: number
  /** Fewer entries than this are not split between two round trips. @default 16 */
  readonly worthSending?: number | undefined
  /** Sends some entries, and calls `next` once, when the next batch may be sent. It must not throw. */
  readonly send: (entries: Own[], next: () => void) => void
}

/**
 * The number of batches in flight. Two keep both sides busy: the server processes one while the other is written or read.
 */
const IN_FLIGHT = 2

/** Another round trip costs Redis, and the client, about as much as twenty entries. */
const WORTH_SENDING = 16

/**
 * Joins the entries that are added in one turn of the event loop, or while two round trips are in flight, into the next
 * round trip. So a thousand claims cost a few round trips or transactions.
 */
export class Batch<Own extends Entry> {
  readonly #limit: number
  readonly #worthSending: number
  readonly #send: BatchOptions<Own>['send']
  #waiting: Own[] = []
  #inFlight = 0
  #scheduled = false

  constructor({ limit, worthSending = WORTH_SENDING, send }: BatchOptions<Own>) {
    this.#limit = limit
    this.#worthSending = worthSending
    this.#send = send
  }

  /** Adds an entry. If its `signal` has aborted before it is sent, it rejects with the reason. */
  add(entry: Own): void {
    this.#waiting.push(entry)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled || this.#inFlight === IN_FLIGHT || this.#waiting.length === 0) return
    this.#scheduled = true
    process.nextTick(this.#flush) // after all promises that continue in this turn
  }

  readonly #flush = (): void => {
    this.#scheduled = false
    const share = Math.max(Math.ceil(this.#waiting.length / (IN_FLIGHT - this.#inFlight)), this.#worthSending)
    while (this.#inFlight < IN_FLIGHT && this.#waiting.length > 0) {
      const entries = this.#waiting.splice(0, Math.min(share, this.#limit)).filter(isWanted)
      if (entries.length > 0) this.#start(entries)
    }
  }

  #start(entries: Own[]): void {
    this.#inFlight += 1
    if (events.batch_sent.hasSubscribers) events.batch_sent.publish({ size: entries.length })
    this.#send(entries, () => {
      this.#inFlight -= 1
      if (this.#waiting.length > 0) inRootContext(() => this.#schedule()) // part of no request: under load this continues
    })
  }
}

/** Is the entry still wanted? If its signal has aborted, it is rejected. */
export function isWanted(entry: Entry): boolean {
  const { aborted, reason } = entry.signal
  if (aborted) entry.reject(reason)
  return !aborted
}
