import type { KeptMarks } from '../../fencing/marks.ts'
import { fenceSql, openMarks } from '../../marks.ts'
import { atMostOne, COMMON, one, parse, seeHelp, suggest } from '../arguments.ts'
import { counted } from '../counted.ts'
import { EXIT, Usage } from '../failure.ts'
import { Output } from '../output.ts'
import { type Column, table, terminalWidth } from './table.ts'

const { json, quiet } = COMMON
const PLACE = { json, quiet, url: { type: 'string' } } as const

const MARKS: readonly Column[] = [
  { title: 'RESOURCE', rank: 0, least: 12 },
  { title: 'SLOT', rank: 3, isNumber: true },
  { title: 'EPOCH', rank: 2, isNumber: true },
  { title: 'TOKEN', rank: 1, isNumber: true },
  { title: 'UPDATED', rank: 4, least: 24 },
  { title: 'PART', rank: 5, least: 8 },
]

const COMMANDS = new Map(Object.entries({ sql, ls, advance, prune }))

/** `holdfast fence`: reads and changes the high-water marks of fenced resources. Returns the exit code. */
export async function fence([name = '', ...args]: readonly string[]): Promise<number> {
  const command = COMMANDS.get(name)
  if (command) return command(args)
  const known = [...COMMANDS.keys()]
  if (name === '' || name.startsWith('-'))
    throw new Usage(`fence needs a command: ${known.join(', ')}; ${seeHelp('fence')}`)
  throw new Usage(`there is no holdfast fence ${name}${suggest(name, known)}; ${seeHelp('fence')}`)
}

/** Prints the SQL that creates the marks, or the trigger for a table. */
async function sql(args: string[]): Promise<number> {
  const text = { type: 'string' } as const
  const options = {
    ...PLACE,
    table: text,
    column: text,
    resource: text,
    epoch: text,
    leases: { type: 'boolean' },
  } as const
  const { values, positionals } = parse('fence', args, options)
  if (positionals.length > 0) throw new Usage(`fence sql takes options only; ${seeHelp('fence')}`)
  const { url = 'postgres://localhost', table, column, resource, epoch, leases } = values
  if (table === undefined && (column ?? resource ?? epoch) !== undefined)
    throw new Usage(`--column, --resource and --epoch need --table; ${seeHelp('fence')}`)
  if (epoch !== undefined && (resource === undefined || !/^\d+$/.test(epoch)))
    throw new Usage(`--epoch needs --resource, and is a number, 0 or more; ${seeHelp('fence')}`)
  if (table !== undefined && leases) throw new Usage('--leases and --table exclude each other: run fence sql twice')
  const row =
    table === undefined
      ? undefined
      : { table, column, resource, epoch: epoch === undefined ? undefined : Number(epoch) }
  new Output(values).printSql(await fenceSql(url, { leases, row }))
  return 0
}

/** Lists the marks. */
async function ls(args: string[]): Promise<number> {
  const { values, positionals } = parse('fence', args, PLACE)
  const prefix = atMostOne('fence', 'PREFIX', positionals) ?? ''
  return withMarks(values, async (marks, output) => {
    const records = await marks.list(prefix)
    const rows = records.map(({ resource, slot = '', part = '', epoch, token, raisedAt }) => [
      ...[resource, slot, `${epoch}`, `${token}`, new Date(raisedAt).toISOString(), part],
    ])
    const none = prefix ? `no mark begins with ${prefix}` : 'there are no marks'
    output.print(records, rows.length > 0 ? table(MARKS, rows, terminalWidth()) : none)
    return 0
  })
}

/** Starts the next epoch of a resource. */
async function advance(args: string[]): Promise<number> {
  const { values, positionals } = parse('fence', args, PLACE)
  const resource = one('fence', 'RESOURCE', positionals)
  return withMarks(values, async (marks, output) => {
    const epoch = await marks.advance(resource)
    const text =
      epoch === undefined
        ? `${resource} has no mark; list the marks with holdfast fence ls`
        : `${resource} is now in epoch ${epoch} and refuses every fence with a lower one.\n` +
          `Make sure that no earlier holder is still running. Then give { epoch: ${epoch} } to every fence of ${resource}.`
    output.print({ resource, advanced: epoch !== undefined, epoch }, text)
    return epoch === undefined ? EXIT.free : 0
  })
}

/** Removes old marks. */
async function prune(args: string[]): Promise<number> {
  const { values, positionals } = parse('fence', args, { ...PLACE, 'older-than': { type: 'string' } })
  const prefix = atMostOne('fence', 'PREFIX', positionals) ?? ''
  const olderThan = parseAge(values['older-than'])
  if (olderThan === 0 && !prefix)
    throw new Usage(
      '--older-than 0 without a PREFIX would remove every mark, so every fence would let old holders write',
    )
  return withMarks(values, async (marks, output) => {
    const pruned = await marks.prune(olderThan, prefix)
    const which = prefix ? ` of resources that begin with ${prefix}` : ''
    const text =
      pruned === 0
        ? `no mark${which} is older than ${values['older-than']}`
        : `removed ${counted(pruned, 'mark')}: a holder that was paused for longer can write again`
    output.print({ pruned }, text)
    return 0
  })
}

async function withMarks(
  values: { url?: string | undefined; json?: boolean | undefined; quiet?: boolean | undefined },
  work: (marks: KeptMarks, output: Output) => Promise<number>,
): Promise<number> {
  const { url } = values
  if (url === undefined)
    throw new Usage('--url is missing: give the URL of the fenced data, such as postgres://host/database')
  await using marks = await openMarks(url)
  return await work(marks, new Output(values))
}

const HOUR = 3_600_000

/** Parses `90d`, `36h` or `0` to milliseconds. */
function parseAge(text: string | undefined): number {
  if (text === '0') return 0
  const [, count, unit] = /^(\d{1,6})([dh])$/.exec(text ?? '') ?? []
  if (count === undefined)
    throw new Usage('--older-than is missing or wrong: give an age in days or hours, such as 90d or 36h')
  return Number(count) * (unit === 'd' ? 24 * HOUR : HOUR)
}
