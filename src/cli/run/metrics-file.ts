import { randomBytes } from 'node:crypto'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** The outcome of a run: exit code 0, another exit code, or a lease that was lost before the command ended. */
type RunOutcome = 'success' | 'failure' | 'lost'

interface Ended {
  readonly at: number
  readonly exit: number
  readonly outcome: RunOutcome
}

/** The metrics of runs that a file has in addition to those of the lease. */
export const RUN_METRICS: Readonly<Record<string, readonly [type: 'counter' | 'gauge', help: string]>> = {
  holdfast_runs_total: ['counter', 'Finished runs by outcome, since the file was created.'],
  holdfast_run_start_timestamp_seconds: ['gauge', 'Unix time at which the last run started.'],
  holdfast_run_end_timestamp_seconds: ['gauge', 'Unix time at which the last finished run ended.'],
  holdfast_run_success_timestamp_seconds: ['gauge', 'Unix time at which the last successful run ended.'],
  holdfast_run_duration_seconds: ['gauge', 'Duration of the last finished run.'],
  holdfast_run_exit_code: ['gauge', 'Exit code of the last finished run.'],
}

const OUTCOMES: readonly RunOutcome[] = ['success', 'failure', 'lost']

/**
 * Records a run in a file for the textfile collector of Prometheus's node exporter. Values of earlier runs in the file are
 * kept: the last success must survive a later failure.
 */
export class RunRecord {
  readonly #label: string
  readonly #started = Date.now()
  /** The result, until it is written. */
  #end: Ended | undefined

  constructor(name: string) {
    this.#label = `name=${JSON.stringify(name)}` // JSON escapes it as Prometheus does, because a name has no control characters
  }

  /** Records the end. `at`: the time at which the command ended, in milliseconds since 1970. */
  end(exit: number, outcome: RunOutcome, at: number): void {
    this.#end = { at, exit, outcome }
  }

  /** Replaces the file with `text`, the metrics of the lease, and the metrics of the runs. */
  replace(path: string, text: string): void {
    const numbers = this.#earlier(path).set(this.#series('holdfast_run_start_timestamp_seconds'), this.#started / 1_000)
    if (this.#end) this.#add(numbers, this.#end)
    const lines = Object.entries(RUN_METRICS).flatMap(([metric, [type, help]]) => {
      const found = [...numbers].filter(([series]) => series.startsWith(`${metric}{`))
      const values = found.map(([series, value]) => `${series} ${value}`)
      return values.length > 0 ? [`# HELP ${metric} ${help}`, `# TYPE ${metric} ${type}`, ...values] : []
    })
    replaceFile(path, `${text}${lines.join('\n')}\n`)
    this.#end = undefined
  }

  #add(numbers: Map<string, number>, { at, exit, outcome }: Ended): void {
    const count = this.#series('holdfast_runs_total', outcome)
    numbers
      .set(count, (numbers.get(count) ?? 0) + 1)
      .set(this.#series('holdfast_run_end_timestamp_seconds'), at / 1_000)
      .set(this.#series('holdfast_run_duration_seconds'), (at - this.#started) / 1_000)
      .set(this.#series('holdfast_run_exit_code'), exit)
    if (outcome === 'success') numbers.set(this.#series('holdfast_run_success_timestamp_seconds'), at / 1_000)
  }

  #series(metric: string, outcome?: RunOutcome): string {
    return `${metric}{${this.#label}${outcome ? `,outcome="${outcome}"` : ''}}`
  }

  /** The values in the file. They are read at each write, because another run of the name may have ended. */
  #earlier(path: string): Map<string, number> {
    const numbers = new Map(OUTCOMES.map(outcome => [this.#series('holdfast_runs_total', outcome), 0]))
    for (const line of readIfThere(path).split('\n')) {
      const [, series = '', metric = '', rest = '', value] = /^((\w+)\{(.*)\}) (\S+)$/.exec(line) ?? []
      const isOwn =
        Object.hasOwn(RUN_METRICS, metric) && (rest === this.#label || rest.startsWith(`${this.#label},outcome=`))
      if (isOwn && Number.isFinite(Number(value))) numbers.set(series, Number(value))
    }
    return numbers
  }
}

/**
 * Replaces a file atomically: the collector reads the old file or the new one. The temporary file has a random name and
 * must not exist, so a link that another user created in the folder is not followed.
 */
export function replaceFile(path: string, text: string): void {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(8).toString('hex')}`)
  try {
    writeFileSync(temporary, text, { flag: 'wx', mode: 0o644 })
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
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
