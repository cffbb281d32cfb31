import { monitorEventLoopDelay, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { Unresponsiveness } from '../../core/advice/unresponsiveness.ts'
import type { Lease, LeaseError } from '../../index.ts'

/** Milliseconds between two renewals, if the store answers faster. */
export const INTERVAL = 100

/** Milliseconds between two samples of the event loop delay. */
const RESOLUTION = 10

/** The result of a measurement. Times are in milliseconds. */
export interface Measurement {
  /** The duration of the measurement. */
  readonly duration: number
  /** The latency of each renewal that was answered, in order. */
  readonly latencies: readonly number[]
  readonly failed: number
  /** The longest time without an answer from the store. */
  readonly unresponsiveness: number
  readonly loopDelay: { readonly p99: number; readonly worst: number }
  readonly gc: { readonly pauses: number; readonly worst: number; readonly total: number }
  /** The error that ended it early, if the lease was lost. */
  readonly lost: LeaseError | undefined
}

/**
 * Renews `lease` ten times a second for `duration` ms, or until `stop` aborts or the lease is lost. Never rejects.
 * `onProgress` is called after each renewal.
 */
export async function measure(
  lease: Lease,
  duration: number,
  stop: AbortSignal,
  onProgress: (elapsed: number, latencies: readonly number[], failed: number) => void,
): Promise<Measurement> {
  const loop = monitorEventLoopDelay({ resolution: RESOLUTION })
  const collections = new GarbageCollections()
  loop.enable()
  const unresponsiveness = new Unresponsiveness()
  const latencies: number[] = []
  const stopped = new Promise<'stopped'>(resolve => stop.addEventListener('abort', () => resolve('stopped')))
  const start = performance.now()
  let failed = 0
  let lost: LeaseError | undefined
  let now = start
  while (!lost && !stop.aborted && now < start + duration) {
    const sent = now
    const answer = await Promise.race([stopped, extend(lease)])
    now = performance.now()
    if (answer === undefined) {
      unresponsiveness.answered(sent, now)
      latencies.push(now - sent)
    } else {
      unresponsiveness.failed(sent)
      if (answer === 'stopped') break
      failed += 1
      if (answer.code === 'LEASE_LOST') lost = answer
    }
    onProgress(now - start, latencies, failed)
    await Promise.race([stopped, new Promise(resolve => setTimeout(resolve, Math.max(sent + INTERVAL - now, 0)))])
    now = performance.now()
  }
  loop.disable()
  const late = (ns: number): number => Math.max(ns / 1e6 - RESOLUTION, 0)
  return {
    duration: now - start,
    latencies,
    failed,
    unresponsiveness: unresponsiveness.longest(now),
    loopDelay: { p99: late(loop.percentile(99)), worst: late(loop.max) },
    gc: collections.end(),
    lost,
  }
}

/** Renews once. Resolves to the error if the renewal failed. */
async function extend(lease: Lease): Promise<LeaseError | undefined> {
  try {
    await lease.extend()
    return undefined
  } catch (error) {
    return error as LeaseError
  }
}

/** Measures the garbage collections of this process. */
class GarbageCollections {
  #pauses = 0
  #worst = 0
  #total = 0
  readonly #observer = new PerformanceObserver(list => this.#add(list.getEntries()))

  constructor() {
    this.#observer.observe({ entryTypes: ['gc'] })
  }

  end(): Measurement['gc'] {
    this.#add(this.#observer.takeRecords())
    this.#observer.disconnect()
    return { pauses: this.#pauses, worst: this.#worst, total: this.#total }
  }

  #add(entries: readonly PerformanceEntry[]): void {
    for (const { duration } of entries) {
      this.#pauses += 1
      this.#worst = Math.max(this.#worst, duration)
      this.#total += duration
    }
  }
}
