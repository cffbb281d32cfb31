import { type Lease, subscribe } from '../../index.ts'
import { type LeaseMetrics, leaseMetrics } from '../../observe/prometheus.ts'
import { EXIT } from '../failure.ts'
import type { Output } from '../output.ts'
import { RunRecord, replaceFile } from './metrics-file.ts'
import type { MetricsOptions } from './metrics-options.ts'
import { serveMetrics } from './metrics-server.ts'

/** Milliseconds: as often as Prometheus looks, or oftener. */
const REWRITE = 15_000

/** What `holdfast run` and `holdfast elect` tell Prometheus. Its counting begins when it is made. */
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

  /** Tells while `work` goes on, and the file once more after it. Rejects with a `Failure` if the port cannot be had. */
  async during(work: () => Promise<number>, replace: typeof replaceFile = replaceFile): Promise<number> {
    const { at, file } = this.#options
    const read = (): string => ofName(this.#metrics.text(), this.#name)
    const write = (): void => this.#try(() => file !== undefined && replace(file, read()))
    const stop = at && (await serveMetrics(at, this.#metrics.contentType, read))
    const ended = work() // first, so that what it begins with is in the first file
    write()
    const timer = setInterval(write, REWRITE)
    try {
      return await ended
    } finally {
      clearInterval(timer)
      stop?.()
      this.#metrics.stop() // the file outlives this process, which then holds nothing, whatever it left behind
      write()
    }
  }

  /** The same while `work` runs under the lease, and how that went. Releases it if the port cannot be had. */
  async duringRun(lease: Lease, work: () => Promise<number>): Promise<number> {
    const run = new RunRecord(this.#name)
    let hasBegun = false
    let isLost = false
    const stopListening = subscribe('lease_lost', event => {
      isLost ||= event.lease === lease
    })
    const watched = async (): Promise<number> => {
      hasBegun = true
      const exit = await work()
      run.end(exit, isLost || exit === EXIT.lost ? 'lost' : exit === 0 ? 'success' : 'failure')
      return exit
    }
    try {
      return await this.during(watched, (path, text) => run.replace(path, text))
    } finally {
      stopListening()
      if (!hasBegun) await lease[Symbol.asyncDispose]()
    }
  }

  /** No reason to end the command, or to change its exit code. */
  #try(write: () => unknown): void {
    try {
      write()
    } catch (error) {
      if (!this.#hasWarned) this.#output.warn('metrics_failed', `--metrics-file was not written: ${error}`)
      this.#hasWarned = true
    }
  }
}

/**
 * All metrics of a process that has one lease, whose name all get, since files of several jobs must not have the same series;
 * but those of what `--skip-if-ran-since` leaves behind.
 */
function ofName(text: string, name: string): string {
  const label = `name=${JSON.stringify(name)}`
  return text.replace(/^(\w+)(?:\{(.*)\})? (.*)\n/gm, (line, metric, labels, value) => {
    if (!labels?.startsWith('name=')) return `${metric}{${label}${labels ? `,${labels}` : ''}} ${value}\n`
    return labels === label || labels.startsWith(`${label},`) ? line : ''
  })
}
