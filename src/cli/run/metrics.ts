import { subscribe } from '../../index.ts'
import { type LeaseMetrics, leaseMetrics } from '../../observe/prometheus.ts'
import { EXIT } from '../failure.ts'
import type { Output } from '../output.ts'
import { type Held, leasesOf } from './held.ts'
import type { Release } from './hold.ts'
import { RunRecord, replaceFile } from './metrics-file.ts'
import type { MetricsOptions } from './metrics-options.ts'
import { serveMetrics } from './metrics-server.ts'

/** Milliseconds between two writes of the file: at most the usual scrape interval. */
const WRITE_INTERVAL = 15_000

/** The metrics of `holdfast run` and `holdfast elect`. They count from their creation. */
export class CommandMetrics {
  readonly #name: string
  readonly #options: MetricsOptions
  readonly #output: Output
  readonly #metrics: LeaseMetrics = leaseMetrics({ labels: ({ name }) => ({ name }) })
  #hasWarned = false

  constructor(name: string, options: MetricsOptions, output: Output) {
    this.#name = name
    this.#options = options
    this.#output = output
  }

  /**
   * Exports metrics while `work` runs. Writes the file once more after it. Rejects with a `Failure` if the port is not
   * available.
   */
  async during(work: () => Promise<number>, replace: typeof replaceFile = replaceFile): Promise<number> {
    const { address, file } = this.#options
    const read = (): string => ofName(this.#metrics.text(), this.#name)
    const write = (): void => this.#tryTo(() => file !== undefined && replace(file, read()))
    const stop = address && (await serveMetrics(address, this.#metrics.contentType, read))
    const ended = work() // starts before the first write, so that the file has its first events
    write()
    const timer = setInterval(write, WRITE_INTERVAL)
    try {
      return await ended
    } finally {
      clearInterval(timer)
      stop?.()
      this.#metrics.stop() // the file outlives this process and must not report a held lease
      write()
    }
  }

  /**
   * Does what `during` does, and records how the run ended. `work` calls the given `release` when the command has ended.
   * Releases the lease if the port is not available.
   */
  async duringRun(lease: Held, work: (release: Release) => Promise<number>, release: Release): Promise<number> {
    const run = new RunRecord(this.#name)
    let hasStarted = false
    let isLost = false
    const leases = leasesOf(lease)
    let endedAt: number | undefined
    const unsubscribe = subscribe('lease_lost', ({ lease: lost, reason }) => {
      // The name may be held long after the command (`--at-least`). An expiry in that time does not belong to the run.
      // But a lease that is gone at its release may have ended while the command ran.
      isLost ||= leases.includes(lost) && !(endedAt !== undefined && reason === 'expired')
    })
    const releaseAfter: Release = (held, output, exit) => {
      endedAt = Date.now()
      return release(held, output, exit)
    }
    const recorded = async (): Promise<number> => {
      hasStarted = true
      const exit = await work(releaseAfter)
      const outcome = isLost || exit === EXIT.lost ? 'lost' : exit === 0 ? 'success' : 'failure'
      run.end(exit, outcome, endedAt ?? Date.now())
      return exit
    }
    try {
      return await this.during(recorded, (path, text) => run.replace(path, text))
    } finally {
      unsubscribe()
      if (!hasStarted) await lease[Symbol.asyncDispose]()
    }
  }

  /** Tries to write. An error is only a warning: the command continues, and its exit code does not change. */
  #tryTo(write: () => unknown): void {
    try {
      write()
    } catch (error) {
      if (!this.#hasWarned) this.#output.failed('metrics_failed', `--metrics-file was not written: ${error}`)
      this.#hasWarned = true
    }
  }
}

/**
 * The metrics, each with the label `name`, because files of several jobs must not have the same series. Metrics of other
 * names, such as the run marker, are left out.
 */
function ofName(text: string, name: string): string {
  const label = `name=${JSON.stringify(name)}`
  return text.replace(/^(\w+)(?:\{(.*)\})? (.*)\n/gm, (line, metric, labels, value) => {
    if (!labels?.startsWith('name=')) return `${metric}{${label}${labels ? `,${labels}` : ''}} ${value}\n`
    return labels === label || labels.startsWith(`${label},`) ? line : ''
  })
}
