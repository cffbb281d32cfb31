import { campaignPauses } from '../../contract/time.ts'
import { Usage } from '../failure.ts'
import { duration, HOLD, type HoldOptions, parseHold } from './hold-options.ts'
import { METRICS_OPTIONS, type MetricsOptions, metricsOptions } from './metrics-options.ts'

/** The options of `holdfast elect`. Durations are milliseconds. */
export interface ElectOptions extends HoldOptions {
  /** The time from the end of the command to the next campaign. Each failure doubles it, up to `maxPause`. */
  readonly pause: number
  readonly maxPause: number
  readonly metrics: MetricsOptions | undefined
}

const OPTIONS = { ...HOLD, ...METRICS_OPTIONS, pause: { type: 'string' }, 'max-pause': { type: 'string' } } as const

/** Parses `NAME [options] -- COMMAND …`. Throws `Usage`. */
export function parseElect(args: readonly string[]): ElectOptions {
  const { values, hold } = parseHold('elect', args, OPTIONS)
  const { pause, maxPause } = campaignPauses({
    pause: duration(values.pause, '--pause'),
    maxPause: duration(values['max-pause'], '--max-pause'),
  })
  if (pause < 10)
    throw new Usage(`--pause ${values.pause} would start a broken command in a busy loop: expected at least 10ms`)
  if (maxPause < pause) {
    throw new Usage(`--max-pause ${values['max-pause']} is shorter than --pause: expected at least ${pause}ms`)
  }
  return { ...hold, pause, maxPause, metrics: metricsOptions(values) }
}
