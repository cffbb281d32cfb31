import type { Client } from './peer.ts'

const TTL = 10_000

/** Each loop takes its own names in turn, so that nobody waits and no name is always the same. */
const NAMES = 64

/** Milliseconds after which the timers of the process get a turn. */
const LONGEST_TURN = 50

/** So many loops, each of which takes and gives back names of its own. */
export class Loops {
  readonly ended: Promise<unknown>
  /** Loops that have not ended. */
  running: number
  readonly #client: Client
  #latencies: number[] = []
  #isStopped = false
  #turnedAt = performance.now()

  constructor(client: Client, loops: number) {
    this.#client = client
    this.running = loops
    this.ended = Promise.all(Array.from({ length: loops }, (_, own) => this.#loop(own)))
  }

  /** Milliseconds of each pair that ended since the last call. */
  take(): number[] {
    const latencies = this.#latencies
    this.#latencies = []
    return latencies
  }

  stop(): void {
    this.#isStopped = true
  }

  async #loop(own: number): Promise<void> {
    for (let turn = 0; !this.#isStopped; turn += 1) {
      const started = performance.now()
      const release = await this.#client.acquire(`pairs:${own}:${turn % NAMES}`, TTL)
      await release()
      const now = performance.now()
      this.#latencies.push(now - started)
      // A store that never leaves the thread would else let no timer run.
      if (now - this.#turnedAt > LONGEST_TURN) await this.#turn()
    }
    this.running -= 1
  }

  async #turn(): Promise<void> {
    await new Promise(setImmediate)
    this.#turnedAt = performance.now()
  }
}
