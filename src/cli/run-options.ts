import { COMMON, one, parse, seeHelp } from './arguments.ts'
import { parseDuration } from './duration.ts'
import { EXIT, Usage } from './failure.ts'

/** `holdfast run`, as asked for on the command line. Durations in milliseconds. */
export interface RunOptions {
  readonly name: string
  readonly command: readonly string[]
  readonly store: string | undefined
  readonly json: boolean | undefined
  readonly quiet: boolean | undefined
  readonly ttl: number
  /** 0: do not wait. */
  readonly wait: number
  readonly max: number | undefined
  readonly grace: number
  readonly onLost: 'kill' | 'term' | 'ignore'
  /** Exit code when another holds the name. */
  readonly busyExit: number
  readonly note: string | undefined
  readonly owner: string | undefined
}

const OPTIONS = {
  ...COMMON,
  ttl: { type: 'string' },
  wait: { type: 'string' },
  max: { type: 'string' },
  grace: { type: 'string' },
  'on-lost': { type: 'string' },
  'conflict-exit-code': { type: 'string', short: 'E' },
  note: { type: 'string' },
  owner: { type: 'string' },
} as const

const DEFAULT_TTL = 10_000
// The command is killed 100 ms before the lease ends, and a renewal comes every ttl/3: below this a store that takes a
// moment would end every job.
const SHORTEST_TTL = 500
const LONGEST_GRACE = 5_000

/** Reads `NAME [options] -- COMMAND …`. Throws `Usage`. */
export function parseRun(args: readonly string[]): RunOptions {
  const dashes = args.indexOf('--')
  const command = dashes < 0 ? [] : args.slice(dashes + 1)
  const { values, positionals } = parse('run', dashes < 0 ? [...args] : args.slice(0, dashes), OPTIONS)
  if (dashes < 0 && positionals.length > 1) {
    const [name, ...rest] = positionals
    throw new Usage(`the command goes after --, as in: holdfast run ${name} -- ${rest.join(' ')}`)
  }
  const name = one('run', 'NAME', positionals)
  if (command.length === 0 || command[0] === '') {
    throw new Usage(`the command is missing, as in: holdfast run ${name} -- node job.js; ${seeHelp('run')}`)
  }

  const ttl = duration(values.ttl, '--ttl') ?? DEFAULT_TTL
  if (ttl < SHORTEST_TTL) {
    throw new Usage(`--ttl ${values.ttl} is too short to end a command in time: expected at least ${SHORTEST_TTL}ms`)
  }
  const grace = duration(values.grace, '--grace') ?? Math.min(LONGEST_GRACE, ttl / 4)
  if (grace > ttl / 3) {
    throw new Usage(
      `--grace ${values.grace} is more than a third of the ttl: renewals come every ${Math.floor(ttl / 3)}ms, ` +
        `and a single late one would end the command; shorten --grace or lengthen --ttl to ${grace * 3}ms or more`,
    )
  }
  const max = duration(values.max, '--max')
  if (max === 0) throw new Usage(`--max ${values.max} leaves no time to run: expected a duration such as 1h`)

  return {
    name,
    command,
    store: values.store,
    json: values.json,
    quiet: values.quiet,
    ttl,
    grace,
    max,
    wait: values.wait === 'forever' ? Number.POSITIVE_INFINITY : (duration(values.wait, '--wait') ?? 0),
    onLost: onLost(values['on-lost'] ?? 'kill'),
    busyExit: exitCode(values['conflict-exit-code']) ?? EXIT.held,
    note: values.note,
    owner: values.owner,
  }
}

function duration(text: string | undefined, option: string): number | undefined {
  return text === undefined ? undefined : parseDuration(text, option)
}

function onLost(text: string): RunOptions['onLost'] {
  if (text === 'kill' || text === 'term' || text === 'ignore') return text
  throw new Usage(`--on-lost ${text} is unknown: expected kill, term or ignore`)
}

function exitCode(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,3}$/.test(text) && Number(text) <= 255) return Number(text)
  throw new Usage(`-E ${text} is no exit code: expected a number from 0 to 255`)
}
