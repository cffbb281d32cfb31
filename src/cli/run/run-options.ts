import { EXIT, Usage } from '../failure.ts'
import { duration, HOLD, type HoldOptions, parseHold } from './hold-options.ts'
import { METRICS_OPTIONS, type MetricsOptions, metricsOptions } from './metrics-options.ts'

/** The options of `holdfast run`. Durations are milliseconds. */
export interface RunOptions extends HoldOptions {
  /** How long to wait for a busy name. 0: do not wait. */
  readonly wait: number
  /** Exit code if the name is busy. */
  readonly busyExit: number
  /** How long the name is held at least, counted from the grant. */
  readonly atLeast: number
  /** Skip the command if a run succeeded within this time. */
  readonly skipIfRanSince: number | undefined
  readonly metrics: MetricsOptions | undefined
}

const OPTIONS = {
  ...HOLD,
  ...METRICS_OPTIONS,
  wait: { type: 'string' },
  max: { type: 'string' },
  'conflict-exit-code': { type: 'string', short: 'E' },
  'at-least': { type: 'string' },
  'skip-if-ran-since': { type: 'string' },
} as const

/** Parses `NAME [options] -- COMMAND …`. Throws `Usage`. */
export function parseRun(args: readonly string[]): RunOptions {
  const { values, hold } = parseHold('run', args, OPTIONS)
  const max = duration(values.max, '--max')
  if (max === 0) throw new Usage(`--max ${values.max} leaves no time to run: expected a duration such as 1h`)
  const since = duration(values['skip-if-ran-since'], '--skip-if-ran-since')
  if (since === 0) throw new Usage('--skip-if-ran-since 0 never skips a run: expected a duration such as 1h')
  return {
    ...hold,
    max,
    wait: values.wait === 'forever' ? Number.POSITIVE_INFINITY : (duration(values.wait, '--wait') ?? 0),
    busyExit: exitCode(values['conflict-exit-code']) ?? EXIT.busy,
    atLeast: duration(values['at-least'], '--at-least') ?? 0,
    skipIfRanSince: since,
    metrics: metricsOptions(values),
  }
}

function exitCode(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,3}$/.test(text) && Number(text) <= 255) return Number(text)
  throw new Usage(`-E ${text} is not an exit code: expected a number from 0 to 255`)
}
