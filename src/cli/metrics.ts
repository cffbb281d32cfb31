import { type Lease, subscribe } from '../index.ts'
import { type LeaseMetrics, leaseMetrics } from '../observe/prometheus.ts'
import { EXIT } from './failure.ts'
import { MetricsFile } from './metrics-file.ts'
import type { Address, MetricsOptions } from './metrics-options.ts'
import { serveMetrics } from './metrics-server.ts'
import type { Output } from './output.ts'

/** Milliseconds: as often as Prometheus looks, or oftener. */
const REWRITE = 15_000

/** What `holdfast run` tells Prometheus. Its counting begins when it is made. */
export class RunMetrics {
  readonly #options: MetricsOptions
  readonly #output: Output
  readonly #metrics: LeaseMetrics = leaseMetrics({ labels: ({ name }) => ({ name }) })
  #hasWarned = false

  constructor(options: MetricsOptions, output: Output) {
    this.#options = options
    this.#output = output
  }

  /** Tells while `work` runs under the lease, and of its exit code. Releases it if the port cannot be had. */
  async during(lease: Lease, work: () => Promise<number>): Promise<number> {
    const { at, file } = this.#options
    const { name } = lease
    const read = (): string => ofName(this.#metrics.text(), name)
    const target = file === undefined ? undefined : new MetricsFile(file, name)
    const write = (): void => this.#try(() => target?.write(read()))
    let isLost = false
    const stops = [
      subscribe('lease_lost', event => {
        isLost ||= event.lease === lease
      }),
    ]
    try {
      if (at) stops.push(await this.#serve(at, lease, read))
      write()
      const timer = setInterval(write, REWRITE)
      stops.push(() => clearInterval(timer))
      const exit = await work()
      this.#metrics.stop() // the file outlives this process, which then holds nothing, whatever it left behind
      const ending = isLost || exit === EXIT.lost ? 'lost' : exit === 0 ? 'success' : 'failure'
      this.#try(() => target?.end(read(), exit, ending))
      return exit
    } finally {
      for (const stop of stops) stop()
    }
  }

  async #serve(at: Address, lease: Lease, read: () => string): Promise<() => void> {
    try {
      return await serveMetrics(at, this.#metrics.contentType, read)
    } catch (error) {
      await lease[Symbol.asyncDispose]()
      throw error
    }
  }

  /** No reason to end the command, or to change its exit code. */
  #try(write: () => void): void {
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
