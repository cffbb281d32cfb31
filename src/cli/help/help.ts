import { Usage } from '../failure.ts'
import { paint } from '../output.ts'
import { wrap } from '../wrap.ts'
import type { CommandHelp, Option } from './command-help.ts'
import { COMMON, DURATION, HELP, STORE, STORE_URLS } from './common.ts'
import { DASHBOARD } from './dashboard.ts'
import { DOCTOR } from './doctor.ts'
import { PROVE } from './prove.ts'
import { DEMO, ELECT, RUN } from './run.ts'
import { BREAK, FENCE, INSPECT, LS, MIGRATE, TOP, TTL } from './show.ts'

/** The width in characters of a term, such as an option, before its meaning. */
const TERM = 26

const EXIT_CODE = 12

/** The width in characters of an example before its effect. Longer examples are not aligned. */
const EXAMPLE = 60

/** The help on every command, by name. */
export const COMMANDS: ReadonlyMap<string, CommandHelp> = new Map(
  Object.entries({
    run: RUN,
    elect: ELECT,
    ls: LS,
    top: TOP,
    inspect: INSPECT,
    break: BREAK,
    doctor: DOCTOR,
    dashboard: DASHBOARD,
    migrate: MIGRATE,
    ttl: TTL,
    fence: FENCE,
    demo: DEMO,
    prove: PROVE,
  }),
)

/** The text of `--help` for one command, or for `holdfast` itself. Throws `Usage` for an unknown command. */
export function helpFor(command: string | undefined): string {
  if (command === undefined) return general()
  const help = COMMANDS.get(command)
  if (!help) throw new Usage(`there is no command ${command}: expected ${[...COMMANDS.keys()].join(', ')}`)
  return textOf(help)
}

function general(): string {
  return join([
    usage('COMMAND'),
    wrap(
      'Distributed locks for the shell: one process at a time holds a lease on a name. Each grant has a fencing token that is higher than all before it.',
    ),
    section('Commands', rows([...COMMANDS.values()].map(({ entry, summary }) => [entry, summary]))),
    section('Examples', [
      '  holdfast run nightly -- node invoices.js',
      '  holdfast run nightly --wait forever -- ./backup.sh',
      '  holdfast elect scheduler -- node scheduler.js',
      '  HOLDFAST_STORE=redis://cache:6379 holdfast ls',
    ]),
    section('Options of most commands', [
      ...rows(COMMON.map(rowOf)),
      ...rows([['--version', 'Prints the version of Holdfast']]),
    ]),
    section('Store URLs', [
      ...STORE_URLS.map(url => `  ${url}`),
      '',
      ...wrap('Put a URL with a password into HOLDFAST_STORE: every user can read --store in a list of processes.', 2),
    ]),
  ])
}

function textOf(help: CommandHelp): string {
  const { usage: line, text, examples, options, exitCodes = [], sections = [] } = help
  const isTimed = options.some(({ flags }) => flags.includes('DURATION'))
  return join([
    usage(line),
    ...text.map(paragraph => wrap(paragraph)),
    section('Examples', exampleLines(examples)),
    section('Options', [...rows(optionsOf(help).map(rowOf)), ...(isTimed ? ['', ...wrap(DURATION, 2)] : [])]),
    ...sections.map(({ title, rows: list, text: paragraphs = [] }) =>
      section(title, [...rows(list), ...paragraphs.flatMap(paragraph => wrap(paragraph, 2))]),
    ),
    ...(exitCodes.length > 0 ? [section('Exit codes', rows(exitCodes, EXIT_CODE))] : []),
  ])
}

/** The options of a command and those of most commands. */
export function optionsOf({ options, isStoreless, hasOnlyHelp }: CommandHelp): Option[] {
  const own = new Set(options.map(({ flags }) => flags))
  if (isStoreless) own.add(STORE)
  if (hasOnlyHelp) return COMMON.filter(({ flags }) => flags === HELP)
  return [...options, ...COMMON.filter(({ flags }) => !own.has(flags))]
}

/** A row: the option as it is typed, then its effect, values and default. */
export function rowOf({ flags, text, values, default: fallback }: Option): readonly [string, string] {
  const facts = [...(values ? [values] : []), ...(fallback ? [`default: ${fallback}`] : [])]
  return [flags, facts.length > 0 ? `${text} (${facts.join('; ')})` : text]
}

function exampleLines(examples: CommandHelp['examples']): string[] {
  const commented = examples.filter(([command, effect]) => effect && command.length <= EXAMPLE)
  const width = Math.max(0, ...commented.map(([command]) => command.length))
  return examples.map(([command, effect]) => `  ${effect ? `${command.padEnd(width)}  # ${effect}` : command}`)
}

/** Formats terms and meanings. A term that is too long gets a line of its own. */
function rows(list: readonly (readonly [term: string, meaning: string])[], width = TERM): string[] {
  return list.flatMap(([term, meaning]) => {
    const lines = wrap(meaning, width)
    const head = `  ${term}`
    return head.length + 2 > width
      ? [head, ...lines]
      : [head.padEnd(width) + (lines[0] ?? '').trimStart(), ...lines.slice(1)]
  })
}

function usage(line: string): string[] {
  return [`${paint('bold', 'Usage:')} holdfast ${line}`]
}

function section(title: string, lines: readonly string[]): string[] {
  return [paint('bold', title), ...lines]
}

/** Joins blocks of lines with an empty line between them. */
function join(blocks: readonly (readonly string[])[]): string {
  return `${blocks.map(lines => lines.join('\n')).join('\n\n')}\n`
}
