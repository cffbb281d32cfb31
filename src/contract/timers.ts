import { type Entry, List } from './list.ts'
import { inRootContext } from './root-context.ts'

/** Above this delay `setTimeout` fires at once (2^31 - 1 ms, about 24.8 days). It is also the longest ttl. */
export const LONGEST_DELAY = 2_147_483_647

/** Keeps the process alive until the function that this returns is called. */
export function keepAlive(): () => void {
  const timer = setInterval(() => {}, LONGEST_DELAY)
  return () => clearInterval(timer)
}

/** Milliseconds for which an unused timer of Node may be kept: most durations are needed again soon. */
const LONGEST_LINGER = 10_000

interface Timer {
  readonly at: number
  readonly action: () => void
  readonly background: boolean
  isOff: boolean
}

/**
 * Timers of this process. All fire in the root context. Timers of equal duration share one timer of Node, which is not
 * cleared when they are. Most timers are for requests and are cancelled soon, and setting and clearing a timer of Node
 * costs 5 us in a cold event loop.
 */
export class Timers {
  #queues = new Map<number, TimerQueue>()
  #setTimeout: unknown

  /** Does what `Clock.after` promises. Without a delay, `action` is called after the pending input is read. */
  set(delay: number, action: () => void, background: boolean): () => void {
    if (delay <= 0) {
      // Also in the background: without a reference it would run only after the next input or timer, seconds later perhaps.
      const immediate = setImmediate(action)
      return () => clearImmediate(immediate)
    }
    if (this.#setTimeout !== setTimeout) {
      this.#setTimeout = setTimeout
      this.#queues = new Map() // a test has installed or removed fake timers
    }
    const duration = Math.min(Math.trunc(delay) || 1, LONGEST_DELAY)
    let queue = this.#queues.get(duration)
    if (!queue) {
      queue = new TimerQueue(duration, this.#queues)
      this.#queues.set(duration, queue)
    }
    return queue.add(action, background)
  }
}

/** Timers of one duration. They fire in the order in which they were set. */
class TimerQueue {
  readonly #duration: number
  readonly #queues: Map<number, TimerQueue>
  readonly #timers = new List<Timer>()
  #foreground = 0
  #timeout: NodeJS.Timeout

  constructor(duration: number, queues: Map<number, TimerQueue>) {
    this.#duration = duration
    this.#queues = queues
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
      // An action that throws does not stop the others. An earlier action may cancel a later one.
      queueMicrotask(() => {
        if (!timer.isOff) timer.action()
      })
    }
    this.#end()
  }

  #wait(delay: number): NodeJS.Timeout {
    const timeout = inRootContext(() => setTimeout(() => this.#run(), delay))
    return this.#foreground > 0 ? timeout : timeout.unref()
  }

  #end(): void {
    clearTimeout(this.#timeout)
    if (this.#queues.get(this.#duration) === this) this.#queues.delete(this.#duration)
  }
}
