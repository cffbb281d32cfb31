import { MessageChannel } from 'node:worker_threads'
import { invalid, show } from '../contract/check.ts'
import type { Clock } from '../contract/time.ts'

interface Timer {
  readonly at: number
  readonly action: () => void
}

/** The wall clock of a new `VirtualClock`. It is constant, so that tokens are reproducible. */
const START = Date.UTC(2026, 0, 1)

/**
 * A clock that moves only when it is advanced. It uses no global timers, so it works with and without the fake timers of
 * Vitest and Jest.
 */
export class VirtualClock implements Clock {
  #now = 0
  #timers: Timer[] = []

  now(): number {
    return this.#now
  }

  wall(): number {
    return START + this.#now
  }

  after(delay: number, action: () => void): () => void {
    const timer = { at: this.#now + Math.max(delay, 0), action }
    const later = this.#timers.findIndex(other => other.at > timer.at)
    this.#timers.splice(later < 0 ? this.#timers.length : later, 0, timer)
    return () => {
      const index = this.#timers.indexOf(timer)
      if (index >= 0) this.#timers.splice(index, 1)
    }
  }

  /** The number of pending timers. It is 0 when nothing is held or waited for. */
  get pending(): number {
    return this.#timers.length
  }

  /** Lets `ms` pass. Runs the due timers in order, and after each everything that follows without more time. */
  async advance(ms: number): Promise<void> {
    checkPass(ms)
    const end = this.#now + ms
    await settle()
    for (let timer = this.#timers[0]; timer && timer.at <= end; timer = this.#timers[0]) {
      this.#timers.shift()
      this.#now = Math.max(this.#now, timer.at)
      timer.action()
      await settle()
    }
    this.#now = Math.max(this.#now, end) // another advance may have gone further meanwhile
  }

  /** Lets `ms` pass at once, as when the event loop is blocked or the process is paused. Due timers run afterwards. */
  async block(ms: number): Promise<void> {
    checkPass(ms)
    this.#now += ms
    await this.advance(0)
  }
}

function checkPass(ms: unknown): void {
  if (!Number.isFinite(ms) || (ms as number) < 0)
    throw invalid(`the time to advance must be a finite number of milliseconds, 0 or more, not ${show(ms)}`)
}

/** Resolves when all promise jobs have run. A message is delivered after them, and no test library fakes messages. */
function settle(): Promise<void> {
  return new Promise(resolve => {
    const { port1, port2 } = new MessageChannel()
    port1.once('message', () => {
      port1.close()
      resolve()
    })
    port2.postMessage(undefined)
  })
}
