import { ENGINES } from '../lab/engines/index.ts'
import { FAULTS } from '../lab/faults/fault.ts'
import type { CommandHelp } from '../src/cli/help/command-help.ts'
import { COMMON, DURATION } from '../src/cli/help/common.ts'
import { COMMANDS, rowOf } from '../src/cli/help/help.ts'
import { between } from './members.ts'

type Row = readonly [term: string, meaning: string]

/** docs/reference/cli.md, with each command as its `--help` describes it. */
export function commandLinePage(page: string): string {
  const commands = [...COMMANDS.values()].map(({ entry, summary }): Row => [`holdfast ${entry}`, summary])
  const shown = new Set<unknown>()
  const helps = Array.from(COMMANDS, ([name, help]) => sectionOf(name, help, shown))
  const withCommands = between(page, 'commands', list(commands))
  return between(withCommands, 'help', [commonOptions(), ...helps].join('\n\n'))
}

/** lab/judging.md, with the faults of the lab and the engines that have them. */
export function faultsPage(page: string): string {
  const lines = Object.entries(FAULTS).map(
    ([name, { group, what }]) => `- \`${name}\` (${group}; ${enginesWith(name)}): ${what}`,
  )
  return between(page, 'faults', lines.join('\n'))
}

function commonOptions(): string {
  return `## Options of every command\n\n${list(COMMON.map(rowOf))}\n\n${DURATION}`
}

/** Commands whose options their `--help` lists: they are for trials, and need no page. */
const TRIALS: readonly string[] = ['demo', 'prove']

/** What an earlier command has in the same words is not repeated. */
function sectionOf(name: string, help: CommandHelp, shown: Set<unknown>): string {
  if (TRIALS.includes(name))
    return [`## holdfast ${name}`, `\`holdfast ${help.usage}\``, ...help.text.map(plain)].join('\n\n')
  const isNew = (part: unknown): boolean => !shown.has(part) && Boolean(shown.add(part))
  const options = help.options.filter(isNew)
  const exitCodes = (help.exitCodes ?? []).filter(([code, meaning]) => isNew(`${code} ${meaning}`))
  const sections = (help.sections ?? []).filter(isNew)
  const known = [
    ...help.options.filter(option => !options.includes(option)).map(({ flags }) => flags.split(' ')[0] ?? ''),
    ...(help.exitCodes ?? []).map(([code]) => code).filter(code => !exitCodes.some(([other]) => other === code)),
  ]
  return [
    `## holdfast ${name}`,
    `\`holdfast ${help.usage}\``,
    ...help.text.map(plain),
    ...(options.length > 0 ? [list(options.map(rowOf))] : []),
    ...sections.map(({ title, rows, text = [] }) =>
      [`${plain(title)}:`, ...(rows.length > 0 ? [list(rows)] : []), ...text.map(plain)].join('\n\n'),
    ),
    ...(exitCodes.length > 0 ? [`Exit codes:\n\n${list(exitCodes)}`] : []),
    ...(known.length > 0 ? [`As above: ${known.map(term => `\`${term}\``).join(', ')}.`] : []),
  ].join('\n\n')
}

/** Without the default of a switch. */
function list(rows: readonly Row[]): string {
  const lines = rows.map(
    ([term, meaning]) => `- \`${term}\`: ${plain(meaning.replace(/ \(default: off\)|; default: off(?=\))/, ''))}`,
  )
  return lines.join('\n')
}

/** Text of a help as Markdown, with its options as code. */
function plain(text: string): string {
  return text.replaceAll('<', '&lt;').replaceAll(/(?<![\w`-]|install )--[a-z][\w-]*/g, '`$&`')
}

function enginesWith(fault: string): string {
  const has = (name: string): boolean =>
    [ENGINES[name]?.faults, ENGINES[name]?.others, ENGINES[name]?.known.faults].some(list => list?.includes(fault))
  const [yes, no] = [true, false].map(wanted => Object.keys(ENGINES).filter(name => has(name) === wanted)) as [
    string[],
    string[],
  ]
  if (no.length === 0) return 'all'
  return no.length <= 2 ? `all but ${no.join(', ')}` : yes.join(', ')
}
