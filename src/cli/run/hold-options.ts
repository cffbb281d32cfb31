import type { ParseArgsOptionsConfig } from 'node:util'
import { DEFAULT_TTL } from '../../contract/time.ts'
import { COMMON, one, type Parsed, parse, seeHelp } from '../arguments.ts'
import { parseDuration } from '../duration.ts'
import { Usage } from '../failure.ts'

/** A command and the lease that is held while it runs. Durations are milliseconds. */
export interface HoldOptions {
  readonly name: string
  readonly command: readonly string[]
  readonly store: string | undefined
  readonly json: boolean | undefined
  readonly quiet: boolean | undefined
  readonly ttl: number
  readonly grace: number
  readonly max?: number | undefined
  readonly onLost: 'kill' | 'term' | 'ignore'
  readonly note: string | undefined
  readonly owner: string | undefined
}

/** The options of every command that holds a lease while another command runs. */
export const HOLD: typeof COMMON & Readonly<Record<'ttl' | 'grace' | 'on-lost' | 'note' | 'owner', Text>> = {
  ...COMMON,
  ttl: { type: 'string' },
  grace: { type: 'string' },
  'on-lost': { type: 'string' },
  note: { type: 'string' },
  owner: { type: 'string' },
}

interface Text {
  readonly type: 'string'
}

// The command is killed 100 ms before the lease ends, and a renewal is due every ttl/3. With a shorter ttl, a slow store
// would end every command.
const SHORTEST_TTL = 500
const LONGEST_GRACE = 5_000

/** Parses `NAME [options] -- COMMAND …` of `holdfast VERB`. Throws `Usage`. */
export function parseHold<const T extends typeof HOLD & ParseArgsOptionsConfig>(
  verb: string,
  args: readonly string[],
  options: T,
): { values: Parsed<T>['values']; hold: HoldOptions } {
  const dashes = args.indexOf('--')
  const command = dashes < 0 ? [] : args.slice(dashes + 1)
  const { values, positionals } = parse(verb, dashes < 0 ? [...args] : args.slice(0, dashes), options)
  if (dashes < 0 && positionals.length > 1) {
    const [name, ...rest] = positionals
    throw new Usage(`put the command after --, as in: holdfast ${verb} ${name} -- ${rest.join(' ')}`)
  }
  const name = one(verb, 'NAME', positionals)
  if (command.length === 0 || command[0] === '') {
    throw new Usage(`the command is missing, as in: holdfast ${verb} ${name} -- node job.js; ${seeHelp(verb)}`)
  }
  return { values, hold: { name, command, ...leaseOf(values as Parsed<typeof HOLD>['values']) } }
}

/** Milliseconds of an option that may be missing. Throws `Usage`. */
export function duration(text: string | undefined, option: string): number | undefined {
  return text === undefined ? undefined : parseDuration(text, option)
}

function leaseOf(values: Parsed<typeof HOLD>['values']): Omit<HoldOptions, 'name' | 'command'> {
  const ttl = duration(values.ttl, '--ttl') ?? DEFAULT_TTL
  if (ttl < SHORTEST_TTL) {
    throw new Usage(`--ttl ${values.ttl} is too short to end a command in time: expected at least ${SHORTEST_TTL}ms`)
  }
  const grace = duration(values.grace, '--grace') ?? Math.min(LONGEST_GRACE, ttl / 4)
  if (grace > ttl / 3) {
    throw new Usage(
      `--grace ${values.grace} is more than a third of the ttl: renewals are due every ${Math.floor(ttl / 3)}ms, ` +
        `so one late renewal would end the command; shorten --grace or set --ttl to ${grace * 3}ms or more`,
    )
  }
  const { store, json, quiet, note, owner } = values
  return { store, json, quiet, note, owner, ttl, grace, onLost: onLost(values['on-lost'] ?? 'kill') }
}

function onLost(text: string): HoldOptions['onLost'] {
  if (text === 'kill' || text === 'term' || text === 'ignore') return text
  throw new Usage(`--on-lost ${text} is unknown: expected kill, term or ignore`)
}
