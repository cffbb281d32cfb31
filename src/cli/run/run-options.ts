import { LARGEST_LIMIT } from '../../contract/store.ts'
import { EXIT, Usage } from '../failure.ts'
import { duration, HOLD, type HoldOptions, parseHold } from './hold-options.ts'
import { METRICS_OPTIONS, type MetricsOptions, metricsOptions } from './metrics-options.ts'

/** The options of `holdfast run`. Durations are milliseconds. */
export interface RunOptions extends HoldOptions {
  /** Further names that are held together with the first. */
  readonly also: readonly string[]
  /** The way in which several processes may hold the name at once. `undefined`: only one may. */
  readonly sharing: Sharing | undefined
  /** The time to wait for a busy name. 0: do not wait. */
  readonly wait: number
  /** Exit code if the name is busy. */
  readonly busyExit: number
  /** The least time for which the name is held, counted from the grant. */
  readonly atLeast: number
  /** Skip the command if a run succeeded within this time. */
  readonly skipIfRanSince: number | undefined
  readonly metrics: MetricsOptions | undefined
}

/** The way to share a name: as a permit of a semaphore, a reader or a writer. */
export type Sharing = { readonly limit: number } | 'reader' | 'writer'

const OPTIONS = {
  ...HOLD,
  ...METRICS_OPTIONS,
  also: { type: 'string', multiple: true },
  limit: { type: 'string' },
  reader: { type: 'boolean' },
  writer: { type: 'boolean' },
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
    also: values.also ?? [],
    sharing: sharing(values),
    max,
    wait: values.wait === 'forever' ? Number.POSITIVE_INFINITY : (duration(values.wait, '--wait') ?? 0),
    busyExit: exitCode(values['conflict-exit-code']) ?? EXIT.busy,
    atLeast: duration(values['at-least'], '--at-least') ?? 0,
    skipIfRanSince: since,
    metrics: metricsOptions(values),
  }
}

interface SharingValues {
  readonly also?: readonly string[] | undefined
  readonly limit?: string | undefined
  readonly reader?: boolean | undefined
  readonly writer?: boolean | undefined
}

function sharing({ also, limit, reader, writer }: SharingValues): Sharing | undefined {
  const given = Object.entries({ '--also': also, '--limit': limit, '--reader': reader, '--writer': writer })
  const [first, second] = given.filter(([, value]) => value !== undefined).map(([option]) => option)
  if (second !== undefined) throw new Usage(`${first} and ${second} exclude each other`)
  if (reader || writer) return reader ? 'reader' : 'writer'
  if (limit === undefined) return undefined
  if (/^\d{1,10}$/.test(limit) && Number(limit) >= 1 && Number(limit) <= LARGEST_LIMIT) return { limit: Number(limit) }
  throw new Usage(`--limit ${limit} is not possible: expected a number from 1 to ${LARGEST_LIMIT}`)
}

function exitCode(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,3}$/.test(text) && Number(text) <= 255) return Number(text)
  throw new Usage(`-E ${text} is not an exit code: expected a number from 0 to 255`)
}
