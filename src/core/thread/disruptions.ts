import type { RecordableHistogram } from 'node:perf_hooks'
import { type Disruptions, RenewalStatistics } from '../advice/renewal-statistics.ts'
import type { CoreEnvironment } from '../core.ts'

const NONE: Disruptions = { failed: 0, unresponsiveness: 0, loopDelay: 0 }

/** Combines the disruptions of two threads. */
function merge(a: Disruptions, b: Disruptions): Disruptions {
  return {
    failed: a.failed + b.failed,
    unresponsiveness: Math.max(a.unresponsiveness, b.unresponsiveness),
    loopDelay: Math.max(a.loopDelay, b.loopDelay),
  }
}

/** Disruptions that one thread writes and another reads at any time, without a lock or a message. */
export class SharedDisruptions {
  readonly memory: SharedArrayBuffer
  /** A count, then microseconds. Integers, because a reader never sees half of one. */
  readonly #words: BigInt64Array
  /** The disruptions that an earlier thread wrote. */
  readonly #before: Disruptions
  #last: Disruptions = NONE

  /** `memory`: the memory of another thread's `SharedDisruptions`. */
  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(24)) {
    this.memory = memory
    this.#words = new BigInt64Array(memory)
    this.#before = this.read()
  }

  read(): Disruptions {
    const [failed, unresponsiveness, loopDelay] = [0, 1, 2].map(word =>
      Number(Atomics.load(this.#words, word)),
    ) as Numbers
    return { failed, unresponsiveness: unresponsiveness / 1_000, loopDelay: loopDelay / 1_000 }
  }

  /** Adds the disruptions of this thread to those before it. This is cheap if nothing changed, as after most renewals. */
  write(own: Disruptions): void {
    const next = merge(this.#before, own)
    const { failed, unresponsiveness, loopDelay } = next
    const last = this.#last
    if (failed === last.failed && unresponsiveness === last.unresponsiveness && loopDelay === last.loopDelay) return
    this.#last = next
    for (const [word, value] of [failed, unresponsiveness * 1_000, loopDelay * 1_000].entries())
      Atomics.store(this.#words, word, BigInt(Math.round(value)))
  }
}

type Numbers = [number, number, number]

/** Memory in which another thread records its renewals. */
export interface SharedStatistics {
  readonly latencies: RecordableHistogram
  /** The memory of a `SharedDisruptions`. */
  readonly disruptions: SharedArrayBuffer
}

/** Adds to `statistics` what another thread records in the memory that this returns. */
export function shareStatistics(statistics: RenewalStatistics, disruptions: SharedDisruptions): SharedStatistics {
  const latencies = statistics.share(own => merge(own, disruptions.read()))
  return { latencies, disruptions: disruptions.memory }
}

/** The statistics of the worker, in memory that the main thread reads at any time. */
export function workerStatistics(
  { clock, loopDelay }: CoreEnvironment,
  { latencies, disruptions }: SharedStatistics,
): RenewalStatistics {
  const shared = new SharedDisruptions(disruptions)
  return new RenewalStatistics(clock, 0, loopDelay, latencies, own => shared.write(own))
}
