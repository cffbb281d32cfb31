import { type Entry, List } from './list.ts'

/** `setTimeout` fires at once above this (2^31 - 1 ms, about 24.8 days); it is also the longest ttl. */
export const LONGEST_DELAY = 2_147_483_647

/** Milliseconds up to which a timer of Node outlives what it was set for: most durations are soon asked for again. */
const LONGEST_LINGER = 10_000

interface Timer {
  readonly at: number
  readonly action: () => void
  readonly background: boolean
  isOff: boolean
}

/**
 * Timers of this process. Most are for requests and are called off soon; to set and clear one of Node's each time would
 * cost 5 us where the event loop is cold, so those of equal duration share one, which is left to find nothing due.
 */
export class Timers {
  #rows = new Map<number, Row>()
  #setTimeout: unknown

  /** As `Clock.after`. Without a delay `action` is called once what has come in by now was read. */
  set(delay: number, action: () => void, background: boolean): () => void {
    if (delay <= 0) {
      const immediate = setImmediate(action)
      if (background) immediate.unref()
      return () => clearImmediate(immediate)
    }
    if (this.#setTimeout !== setTimeout) {
      this.#setTimeout = setTimeout
      this.#rows = new Map() // a test put fake timers in place, or took them away
    }
    const duration = Math.min(Math.trunc(delay) || 1, LONGEST_DELAY)
    let row = this.#rows.get(duration)
    if (!row) {
      row = new Row(duration, this.#rows)
      this.#rows.set(duration, row)
    }
    return row.add(action, background)
  }
}

/** Timers of one duration, which therefore fall due in the order in which they were set. */
class Row {
  readonly #duration: number
  readonly #rows: Map<number, Row>
  readonly #timers = new List<Timer>()
  #foreground = 0
  #timeout: NodeJS.Timeout

  constructor(duration: number, rows: Map<number, Row>) {
    this.#duration = duration
    this.#rows = rows
    this.#timeout = this.#wait(duration)
  }

  add(action: () => void, background: boolean): () => void {
    const timer: Timer = { at: performance.now() + this.#duration, action, background, isOff: false }
    const entry = this.#timers.add(timer)
    if (!background && this.#foreground++ === 0) this.#timeout.ref()
    return () => {
      timer.isOff = true
      if (this.#remove(entry) && this.#timers.size === 0 && this.#duration > LONGEST_LINGER) this.#end()
    }
  }

  #remove(entry: Entry<Timer>): boolean {
    if (!this.#timers.remove(entry)) return false
    if (!entry.value.background && --this.#foreground === 0) this.#timeout.unref()
    return true
  }

  #run(): void {
    const now = performance.now()
    for (let entry = this.#timers.first; entry; entry = this.#timers.first) {
      const timer = entry.value
      if (timer.at > now) {
        this.#timeout = this.#wait(timer.at - now)
        return
      }
      this.#remove(entry)
      // One that throws stops no other; and each may still be called off by those before it.
      queueMicrotask(() => {
        if (!timer.isOff) timer.action()
      })
    }
    this.#end()
  }

  #wait(delay: number): NodeJS.Timeout {
    const timeout = setTimeout(() => this.#run(), delay)
    return this.#foreground > 0 ? timeout : timeout.unref()
  }

  #end(): void {
    clearTimeout(this.#timeout)
    if (this.#rows.get(this.#duration) === this) this.#rows.delete(this.#duration)
  }
}
