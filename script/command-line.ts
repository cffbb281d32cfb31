import { ENGINES } from '../lab/engines/index.ts'
import { FAULTS } from '../lab/faults/fault.ts'
import type { CommandHelp } from '../src/cli/help/command-help.ts'
import { COMMANDS, optionsOf } from '../src/cli/help/help.ts'
import { table } from './proof/page.ts'

const BLOCK = /(<!-- (\w+), ([\w ()-]+): begin -->\n).*?(<!-- \2, \3: end -->)/gs

/** docs/reference/cli.md, with its tables as `--help` has them. A block is named after its command and part: `run, options`. */
export function commandLinePage(text: string): string {
  const missing = [...COMMANDS].filter(([name, { options }]) => {
    return options.length > 0 && !text.includes(`<!-- ${name}, options: begin -->`)
  })
  if (missing.length > 0)
    throw new Error(`docs/reference/cli.md has no table of the options of ${missing.map(([name]) => name)}`)
  return text.replace(BLOCK, (_, begin: string, command: string, part: string, end: string) => {
    return `${begin}\n${block(command, part)}\n\n${end}`
  })
}

function block(name: string, part: string): string {
  if (name === 'all') return commandTable()
  const help = COMMANDS.get(name)
  if (!help) throw new Error(`docs/reference/cli.md: there is no command ${name}`)
  if (part === 'options') return optionTable(help)
  if (part === 'exit codes') return termTable(['exit code', 'meaning'], help.exitCodes ?? [])
  if (part === 'faults') return faultTable()
  const section = help.sections?.find(({ title }) => title === part)
  if (!section) throw new Error(`docs/reference/cli.md: the help of ${name} has no part ${part}`)
  return termTable(['', ''], section.rows)
}

function commandTable(): string {
  const rows = [...COMMANDS.values()].map(({ entry, summary }) => [code(`holdfast ${entry}`), summary])
  return table(['command', 'what it does'], rows)
}

function optionTable(help: CommandHelp): string {
  const rows = optionsOf(help).map(({ flags, text, values = '', default: fallback = '' }) => {
    return [code(flags), cell(text), cell(values), cell(fallback)]
  })
  return table(['option', 'what it does', 'values', 'default'], rows)
}

function termTable(head: readonly string[], rows: readonly (readonly [string, string])[]): string {
  return table(
    head,
    rows.map(([term, meaning]) => [code(term), cell(meaning)]),
  )
}

function faultTable(): string {
  const rows = Object.entries(FAULTS).map(([name, { group, what }]) => [
    code(name),
    group,
    cell(what),
    enginesWith(name),
  ])
  return table(['fault', 'group', 'what happens', 'engines'], rows)
}

function enginesWith(fault: string): string {
  const has = (name: string): boolean =>
    [ENGINES[name]?.faults, ENGINES[name]?.others].some(list => list?.includes(fault))
  const [yes, no] = [true, false].map(wanted => Object.keys(ENGINES).filter(name => has(name) === wanted)) as [
    string[],
    string[],
  ]
  if (no.length === 0) return 'all'
  return no.length <= 2 ? `all but ${no.join(', ')}` : yes.join(', ')
}

function code(text: string): string {
  return `\`${cell(text)}\``
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}
