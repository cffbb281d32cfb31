import { randomBytes } from 'node:crypto'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** How a run ended: the command with 0, the command otherwise, or the lease before the command. */
type Ending = 'success' | 'failure' | 'lost'

interface Ended {
  readonly at: number
  readonly exit: number
  readonly ending: Ending
}

/** What a file tells of the runs of one name, beside the metrics of the lease. */
export const RUN_METRICS: Readonly<Record<string, readonly [type: 'counter' | 'gauge', help: string]>> = {
  holdfast_runs_total: ['counter', 'Finished runs by outcome, since the file was created.'],
  holdfast_run_start_timestamp_seconds: ['gauge', 'Unix time at which the last run started.'],
  holdfast_run_end_timestamp_seconds: ['gauge', 'Unix time at which the last finished run ended.'],
  holdfast_run_success_timestamp_seconds: ['gauge', 'Unix time at which the last successful run ended.'],
  holdfast_run_duration_seconds: ['gauge', 'Duration of the last finished run.'],
  holdfast_run_exit_code: ['gauge', 'Exit code of the last finished run.'],
}

const ENDINGS: readonly Ending[] = ['success', 'failure', 'lost']

/**
 * Of one run, for a file of the textfile collector of Prometheus's node exporter, which stays after it. What the file said
 * of earlier runs is taken over: the success of last week must not be forgotten for the failure of today.
 */
export class RunRecord {
  readonly #label: string
  readonly #started = Date.now()
  /** How it ended, until that was written. */
  #end: Ended | undefined

  constructor(name: string) {
    this.#label = `name=${JSON.stringify(name)}` // which has no control characters, so that JSON escapes the same
  }

  end(exit: number, ending: Ending): void {
    this.#end = { at: Date.now(), exit, ending }
  }

  /** `text` is of its lease. */
  replace(path: string, text: string): void {
    const numbers = this.#before(path).set(this.#series('holdfast_run_start_timestamp_seconds'), this.#started / 1_000)
    if (this.#end) this.#add(numbers, this.#end)
    const lines = Object.entries(RUN_METRICS).flatMap(([metric, [type, help]]) => {
      const found = [...numbers].filter(([series]) => series.startsWith(`${metric}{`))
      const values = found.map(([series, value]) => `${series} ${value}`)
      return values.length > 0 ? [`# HELP ${metric} ${help}`, `# TYPE ${metric} ${type}`, ...values] : []
    })
    replaceFile(path, `${text}${lines.join('\n')}\n`)
    this.#end = undefined
  }

  #add(numbers: Map<string, number>, { at, exit, ending }: Ended): void {
    const count = this.#series('holdfast_runs_total', ending)
    numbers
      .set(count, (numbers.get(count) ?? 0) + 1)
      .set(this.#series('holdfast_run_end_timestamp_seconds'), at / 1_000)
      .set(this.#series('holdfast_run_duration_seconds'), (at - this.#started) / 1_000)
      .set(this.#series('holdfast_run_exit_code'), exit)
    if (ending === 'success') numbers.set(this.#series('holdfast_run_success_timestamp_seconds'), at / 1_000)
  }

  #series(metric: string, ending?: Ending): string {
    return `${metric}{${this.#label}${ending ? `,outcome="${ending}"` : ''}}`
  }

  /** Read at each write: another run of the name may have ended meanwhile. */
  #before(path: string): Map<string, number> {
    const numbers = new Map(ENDINGS.map(ending => [this.#series('holdfast_runs_total', ending), 0]))
    for (const line of readIfThere(path).split('\n')) {
      const [, series = '', metric = '', rest = '', value] = /^((\w+)\{(.*)\}) (\S+)$/.exec(line) ?? []
      const isOfThese =
        Object.hasOwn(RUN_METRICS, metric) && (rest === this.#label || rest.startsWith(`${this.#label},outcome=`))
      if (isOfThese && Number.isFinite(Number(value))) numbers.set(series, Number(value))
    }
    return numbers
  }
}

/**
 * The collector may read at any time: it finds the old file or the new one. The temporary file has a random name and must
 * not exist yet, so a link that another user planted in the folder is not followed.
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
