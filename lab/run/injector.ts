import { setTimeout as pause } from 'node:timers/promises'
import type { Fault, Turn } from '../faults/fault.ts'
import { seeded } from '../faults/random.ts'
import type { Recorder } from '../judge/history.ts'
import type { Planned } from './plan.ts'

/** How often to try a fault that is not possible now, and the milliseconds between. */
const TRIES = 50
const PAUSE = 50

/** Injects the planned faults and records them. */
export class Injector {
  readonly #faults: Readonly<Record<string, Fault>>
  readonly #history: Recorder
  readonly #over = new AbortController()
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #failed: (error: unknown) => void

  /** `failed` is called if a fault cannot be injected or repaired. */
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

  /** Repairs all faults. */
  async end(): Promise<void> {
    this.#over.abort()
    await Promise.all(this.#underWay)
  }

  async #inject({ fault: what, length, seed }: Planned): Promise<void> {
    const fault = this.#faults[what]
    if (!fault) return
    let reported: string | undefined
    const turn: Turn = {
      random: seeded(seed),
      length,
      report: (target, effects = {}) => {
        reported = target
        this.#history.write('fault', { what, target, ...effects })
      },
      wait: ms => this.#wait(ms),
    }
    try {
      // Its target may have a fault already.
      for (let tries = 0; tries < TRIES; tries++) {
        await fault(turn)
        if (reported !== undefined) return
        await this.#wait(PAUSE)
        if (this.#over.signal.aborted) return
      }
    } finally {
      if (reported !== undefined) this.#history.write('healed', { what, target: reported })
    }
  }

  async #wait(ms: number): Promise<void> {
    await pause(Math.max(0, ms), undefined, { signal: this.#over.signal }).catch(() => {})
  }
}
