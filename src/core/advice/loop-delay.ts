import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'

/** Milliseconds between two looks: a delay is known to within as much. 20 looks a second are 0.1 to 0.2 % of a processor. */
const RESOLUTION = 50

/** How late the event loop of this thread came to its timers, from the first look on. Keeps no process alive. */
export class LoopDelay {
  #monitor: IntervalHistogram | undefined
  #watches = false
  #worstBefore = 0

  get watches(): boolean {
    return this.#watches
  }

  /** Milliseconds. */
  get worst(): number {
    const longest = this.#watches && this.#monitor ? this.#monitor.max / 1e6 - RESOLUTION : 0
    return Math.max(this.#worstBefore, longest)
  }

  watch(): void {
    if (this.#watches) return
    this.#watches = true
    this.#monitor ??= monitorEventLoopDelay({ resolution: RESOLUTION })
    this.#monitor.enable()
    this.#monitor.reset() // else it takes the time for which it was off for a delay
  }

  rest(): void {
    if (!this.#watches) return
    this.#worstBefore = this.worst
    this.#monitor?.disable()
    this.#watches = false
  }
}
