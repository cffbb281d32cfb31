import type { Clock } from '../../src/contract/time.ts'
import type { Random } from './random.ts'
import { settled, type World } from './world.ts'

/** The start of every simulation, in milliseconds since 1970. */
export const BEGINNING: number = Date.UTC(2026, 0, 1)

/**
 * A process with its clock, which runs a little fast or slow. While it is paused (stopped, suspended, or its event loop
 * blocked) it runs no code and its clock goes on. When it is resumed, all due timers fire late.
 */
export class Machine implements Clock {
  readonly name: string
  state: 'running' | 'stopped' | 'dead' = 'running'
  /** Was it ever paused? */
  hasStopped = false
  /** Sometimes called when it is resumed, before the due timers. */
  onResume: () => void = () => {}
  readonly #world: World
  readonly #random: Random
  readonly #rate: number
  readonly #started: number
  #skew: number
  #leapt = 0
  #slept = 0
  #isSleepy = false
  #timers: (() => void)[] = []
  #messages: (() => void)[] = []

  /** `drift`: the share by which its clock is at most too fast or slow. */
  constructor(name: string, world: World, random: Random, drift = 0.008) {
    this.name = name
    this.#world = world
    this.#random = random
    this.#rate = random.between(1 - drift, 1 + drift) // the margin of a deadline is for 1 %
    this.#started = random.between(0, 1e6)
    this.#skew = random.between(-1e6, 1e6)
  }

  now(): number {
    return this.#started + this.#leapt + (this.#world.now - this.#slept) * this.#rate
  }

  wall(): number {
    return BEGINNING + this.#skew + this.#world.now * this.#rate
  }

  after(delay: number, action: () => void): () => void {
    let isOff = false
    const run = (): void => {
      if (!isOff) action()
    }
    const stop = this.#world.after(delay / this.#rate, () => this.#run(run, this.#timers))
    return () => {
      isOff = true
      stop()
    }
  }

  /** Handles a message, now or when the machine is resumed. */
  deliver(action: () => void): void {
    this.#run(action, this.#messages)
  }

  sleep(ms: number): Promise<void> {
    return new Promise(resolve => this.after(ms, resolve))
  }

  /** Pauses for `ms`. */
  stop(ms: number): void {
    if (this.state !== 'running') return
    this.state = 'stopped'
    this.hasStopped = true
    this.#world.after(ms, () => {
      if (this.#isSleepy) this.#slept += ms
      return this.#resume()
    })
  }

  /** Sets its wall clock ahead of true time by `ms`. A process takes a step forward for a pause. */
  setWall(ms: number): void {
    const step = ms - this.#skew
    this.#skew = ms
    if (step <= 0) return
    this.#leapt += step
    this.hasStopped = true
  }

  /** Crashes. */
  crash(): void {
    this.state = 'dead'
  }

  /** A clock of this machine that, wrongly, does not count pauses. */
  sleeping(): Clock {
    this.#isSleepy = true
    return this
  }

  async #resume(): Promise<void> {
    if (this.state !== 'stopped') return
    this.state = 'running'
    if (this.#random.chance(0.5)) this.onResume()
    const late = [this.#timers, this.#messages]
    this.#timers = []
    this.#messages = []
    if (this.#random.chance(0.5)) late.reverse()
    for (const action of late.flat()) {
      action()
      await settled()
    }
  }

  #run(action: () => void, queue: (() => void)[]): void {
    if (this.state === 'running') action()
    else if (this.state === 'stopped') queue.push(action)
  }
}
