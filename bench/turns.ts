import { pause, type Release } from './peer.ts'
import { requests } from './requests.ts'
import { ownCpu } from './scenario.ts'
import { fairness, quantile } from './statistics.ts'
import type { Values } from './worker.ts'

/** Tasks of this process, each of which acquires, works for `busy` milliseconds, releases and comes back at once. */
export class Turns {
  readonly #acquire: (task: number, turn: number) => Promise<Release>
  readonly #busy: number
  readonly #counts: number[]
  #waits: number[] = []
  #isStopped = false

  constructor(tasks: number, busy: number, acquire: (task: number, turn: number) => Promise<Release>) {
    this.#acquire = acquire
    this.#busy = busy
    this.#counts = Array<number>(tasks).fill(0)
    for (let task = 0; task < tasks; task += 1) void this.#run(task)
  }

  /** What happens during `time`, a promise. */
  async during(time: Promise<unknown>): Promise<Values> {
    this.#counts.fill(0)
    this.#waits = []
    const [started, sent, cpu] = [performance.now(), requests(), ownCpu()]
    await time
    const [elapsed, asked, used] = [performance.now() - started, requests() - sent, ownCpu() - cpu]
    const grants = this.#waits.length
    return {
      rate: (grants * 1_000) / elapsed,
      wait50: quantile(this.#waits, 0.5),
      wait99: quantile(this.#waits, 0.99),
      requests: asked / grants,
      clientCpu: (used * 1_000) / grants,
      fairness: fairness(this.#counts),
    }
  }

  /** Begins no further turn. Tasks that poll may take long to come to an end, and nobody needs them any more. */
  stop(): void {
    this.#isStopped = true
  }

  async #run(task: number): Promise<void> {
    for (let turn = 0; !this.#isStopped; turn += 1) {
      const asked = performance.now()
      const release = await this.#acquire(task, turn)
      this.#waits.push(performance.now() - asked)
      this.#counts[task] = (this.#counts[task] ?? 0) + 1
      if (this.#busy > 0) await pause(this.#busy)
      await release()
    }
  }
}
