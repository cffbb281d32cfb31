import { events } from '../../contract/events.ts'

interface Wanted {
  /** Aborts when nobody waits for it any more. */
  readonly signal: AbortSignal
  reject(reason: unknown): void
}

export interface BatchOptions<Entry> {
  /** The largest number of entries sent at once. */
  readonly limit: number
  /** Fewer are not shared between two requests. @default 16 */
  readonly worthSending?: number
  /** Carries out some entries, and calls `next` once, when the next may leave. Must not throw. */
  readonly send: (entries: Entry[], next: () => void) => void
}

/** Two under way keep both sides at work: the server carries out one while the other is written or read. */
const UNDER_WAY = 2

/** A request more costs Redis, and the client, about as much as twenty entries. */
const WORTH_SENDING = 16

/**
 * Joins what is added in one turn of the event loop, or while two requests are under way, into the next: a thousand
 * claims cost a few round trips or transactions.
 */
export class Batch<Entry extends Wanted> {
  readonly #limit: number
  readonly #worthSending: number
  readonly #send: BatchOptions<Entry>['send']
  #waiting: Entry[] = []
  #underWay = 0
  #scheduled = false

  constructor({ limit, worthSending = WORTH_SENDING, send }: BatchOptions<Entry>) {
    this.#limit = limit
    this.#worthSending = worthSending
    this.#send = send
  }

  /** An entry whose `signal` has aborted by the time its turn comes is not sent and rejects with the reason. */
  add(entry: Entry): void {
    this.#waiting.push(entry)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled || this.#underWay === UNDER_WAY || this.#waiting.length === 0) return
    this.#scheduled = true
    process.nextTick(this.#flush) // after all promises that go on in this turn
  }

  readonly #flush = (): void => {
    this.#scheduled = false
    const share = Math.max(Math.ceil(this.#waiting.length / (UNDER_WAY - this.#underWay)), this.#worthSending)
    while (this.#underWay < UNDER_WAY && this.#waiting.length > 0) {
      const entries = this.#waiting.splice(0, Math.min(share, this.#limit)).filter(isWanted)
      if (entries.length > 0) this.#start(entries)
    }
  }

  #start(entries: Entry[]): void {
    this.#underWay += 1
    if (events.batch_sent.hasSubscribers) events.batch_sent.publish({ size: entries.length })
    this.#send(entries, () => {
      this.#underWay -= 1
      this.#schedule()
    })
  }
}

function isWanted(entry: Wanted): boolean {
  const { aborted, reason } = entry.signal
  if (aborted) entry.reject(reason)
  return !aborted
}
