import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'

/** Milliseconds between samples, and the accuracy. 20 samples a second cost 0.1 to 0.2 % of a processor. */
const RESOLUTION = 50

/** The worst delay of this thread's event loop while this runs. Keeps no process alive. */
export class LoopDelay {
  #monitor: IntervalHistogram | undefined
  #isRunning = false
  #worstBefore = 0

  get isRunning(): boolean {
    return this.#isRunning
  }

  /** The worst delay in milliseconds. */
  get worst(): number {
    const longest = this.#isRunning && this.#monitor ? this.#monitor.max / 1e6 - RESOLUTION : 0
    return Math.max(this.#worstBefore, longest)
  }

  start(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    this.#monitor ??= monitorEventLoopDelay({ resolution: RESOLUTION })
    this.#monitor.enable()
    this.#monitor.reset() // otherwise the time while it was disabled counts as a delay
  }

  stop(): void {
    if (!this.#isRunning) return
    this.#worstBefore = this.worst
    this.#monitor?.disable()
    this.#isRunning = false
  }
}
