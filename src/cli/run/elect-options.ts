import { Usage } from '../failure.ts'
import { duration, HOLD, type HoldOptions, parseHold } from './hold-options.ts'
import { METRICS_OPTIONS, type MetricsOptions, metricsOptions } from './metrics-options.ts'

/** The options of `holdfast elect`. Durations are milliseconds. */
export interface ElectOptions extends HoldOptions {
  /** From the end of the command to the next campaign. Each failure doubles it, up to `longestPause`. */
  readonly pause: number
  readonly longestPause: number
  readonly metrics: MetricsOptions | undefined
}

const OPTIONS = { ...HOLD, ...METRICS_OPTIONS, pause: { type: 'string' }, 'longest-pause': { type: 'string' } } as const

const DEFAULT_PAUSE = 1_000
const DEFAULT_LONGEST_PAUSE = 30_000

/** Parses `NAME [options] -- COMMAND …`. Throws `Usage`. */
export function parseElect(args: readonly string[]): ElectOptions {
  const { values, hold } = parseHold('elect', args, OPTIONS)
  const pause = duration(values.pause, '--pause') ?? DEFAULT_PAUSE
  const longestPause = duration(values['longest-pause'], '--longest-pause') ?? Math.max(DEFAULT_LONGEST_PAUSE, pause)
  if (pause < 10)
    throw new Usage(`--pause ${values.pause} would start a broken command in a busy loop: expected at least 10ms`)
  if (longestPause < pause) {
    throw new Usage(`--longest-pause ${values['longest-pause']} is shorter than --pause: expected at least ${pause}ms`)
  }
  return { ...hold, pause, longestPause, metrics: metricsOptions(values) }
}
