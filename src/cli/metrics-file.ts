import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** How a run ended: the command with 0, the command otherwise, or the lease before the command. */
type Ending = 'success' | 'failure' | 'lost'

/** What a file tells of the runs of one name, beside the metrics of the lease. */
export const RUN_METRICS: Readonly<Record<string, readonly [type: 'counter' | 'gauge', help: string]>> = {
  holdfast_runs_total: ['counter', 'Runs that ended, by their outcome, since the file was made.'],
  holdfast_run_start_timestamp_seconds: ['gauge', 'When the last run began, in seconds since 1970.'],
  holdfast_run_end_timestamp_seconds: ['gauge', 'When the last run that ended did, in seconds since 1970.'],
  holdfast_run_success_timestamp_seconds: ['gauge', 'When the last run that succeeded ended, in seconds since 1970.'],
  holdfast_run_duration_seconds: ['gauge', 'How long the last run took that ended.'],
  holdfast_run_exit_code: ['gauge', 'The exit code of the last run that ended.'],
}

const ENDINGS: readonly Ending[] = ['success', 'failure', 'lost']

/**
 * A file for the textfile collector of Prometheus's node exporter, which stays after the run. What it said of earlier
 * runs is taken over: the success of last week must not be forgotten for the failure of today.
 */
export class MetricsFile {
  readonly #path: string
  readonly #label: string
  readonly #started = Date.now()

  constructor(path: string, name: string) {
    this.#path = path
    this.#label = `name=${JSON.stringify(name)}` // which has no control characters, so that JSON escapes the same
  }

  /** The run goes on; `text` is of its lease. */
  write(text: string): void {
    this.#replace(text, this.#before().set(this.#series('holdfast_run_start_timestamp_seconds'), this.#started / 1_000))
  }

  end(text: string, exit: number, ending: Ending): void {
    const now = Date.now()
    const numbers = this.#before()
    const count = this.#series('holdfast_runs_total', ending)
    numbers
      .set(count, (numbers.get(count) ?? 0) + 1)
      .set(this.#series('holdfast_run_start_timestamp_seconds'), this.#started / 1_000)
      .set(this.#series('holdfast_run_end_timestamp_seconds'), now / 1_000)
      .set(this.#series('holdfast_run_duration_seconds'), (now - this.#started) / 1_000)
      .set(this.#series('holdfast_run_exit_code'), exit)
    if (ending === 'success') numbers.set(this.#series('holdfast_run_success_timestamp_seconds'), now / 1_000)
    this.#replace(text, numbers)
  }

  #series(metric: string, ending?: Ending): string {
    return `${metric}{${this.#label}${ending ? `,outcome="${ending}"` : ''}}`
  }

  /** Read at each write: another run of the name may have ended meanwhile. */
  #before(): Map<string, number> {
    const numbers = new Map(ENDINGS.map(ending => [this.#series('holdfast_runs_total', ending), 0]))
    for (const line of readIfThere(this.#path).split('\n')) {
      const [, series = '', metric = '', rest = '', value] = /^((\w+)\{(.*)\}) (\S+)$/.exec(line) ?? []
      const isOfThese = metric in RUN_METRICS && (rest === this.#label || rest.startsWith(`${this.#label},outcome=`))
      if (isOfThese && Number.isFinite(Number(value))) numbers.set(series, Number(value))
    }
    return numbers
  }

  /** The collector may read at any moment: it finds the old file or the new one. */
  #replace(text: string, numbers: ReadonlyMap<string, number>): void {
    const lines = Object.entries(RUN_METRICS).flatMap(([metric, [type, help]]) => {
      const found = [...numbers].filter(([series]) => series.startsWith(`${metric}{`))
      const values = found.map(([series, value]) => `${series} ${value}`)
      return values.length > 0 ? [`# HELP ${metric} ${help}`, `# TYPE ${metric} ${type}`, ...values] : []
    })
    const temporary = join(dirname(this.#path), `.${basename(this.#path)}.${process.pid}`)
    try {
      writeFileSync(temporary, `${text}${lines.join('\n')}\n`)
      renameSync(temporary, this.#path)
    } catch (error) {
      rmSync(temporary, { force: true })
      throw error
    }
  }
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}
