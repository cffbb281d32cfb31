import { setTimeout as pause } from 'node:timers/promises'
import type { Fault, Turn } from './fault.ts'
import type { Recorder } from './history.ts'
import type { Planned } from './plan.ts'
import { seeded } from './random.ts'

/** How often a fault is tried that cannot be had now, and the milliseconds between. */
const TRIES = 50
const PAUSE = 50

/** Lets things go wrong as planned, and tells of it. */
export class Injector {
  readonly #faults: Readonly<Record<string, Fault>>
  readonly #history: Recorder
  readonly #over = new AbortController()
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #failed: (error: unknown) => void

  /** `failed` is called if something cannot be broken or mended. */
  constructor(faults: Readonly<Record<string, Fault>>, history: Recorder, failed: (error: unknown) => void) {
    this.#faults = faults
    this.#history = history
    this.#failed = failed
  }

  /** Resolves when the last one has begun, or when `end` is called. */
  async run(plan: readonly Planned[]): Promise<void> {
    const start = performance.now()
    for (const planned of plan) {
      await this.#wait(planned.at - (performance.now() - start))
      if (this.#over.signal.aborted) return
      const turn: Promise<void> = this.#inject(planned)
        .catch(this.#failed)
        .finally(() => this.#underWay.delete(turn))
      this.#underWay.add(turn)
    }
  }

  /** Mends all that is broken. */
  async end(): Promise<void> {
    this.#over.abort()
    await Promise.all(this.#underWay)
  }

  async #inject({ fault: what, length, seed }: Planned): Promise<void> {
    const fault = this.#faults[what]
    if (!fault) return
    let told: string | undefined
    const turn: Turn = {
      random: seeded(seed),
      length,
      tell: (target, marks = {}) => {
        told = target
        this.#history.write('fault', { what, target, ...marks })
      },
      wait: ms => this.#wait(ms),
    }
    try {
      // What it would strike may be broken already.
      for (let tries = 0; tries < TRIES && (await fault(turn)) === false; tries++) {
        await this.#wait(PAUSE)
        if (this.#over.signal.aborted) return
      }
    } finally {
      if (told !== undefined) this.#history.write('healed', { what, target: told })
    }
  }

  async #wait(ms: number): Promise<void> {
    await pause(Math.max(0, ms), undefined, { signal: this.#over.signal }).catch(() => {})
  }
}
