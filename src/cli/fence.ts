import { fenceSql, type KeptMarks, openMarks } from '../index.ts'
import { atMostOne, COMMON, one, parse, seeHelp, suggest } from './arguments.ts'
import { EXIT, Usage } from './failure.ts'
import { Output } from './output.ts'
import { table } from './table.ts'

const { json, quiet } = COMMON
const PLACE = { json, quiet, url: { type: 'string' } } as const

const COMMANDS = new Map(Object.entries({ sql, ls, advance, prune }))

/** `holdfast fence`: the marks by which resources refuse old holders. */
export async function fence([name = '', ...args]: readonly string[]): Promise<number> {
  const command = COMMANDS.get(name)
  if (command) return command(args)
  const known = [...COMMANDS.keys()]
  if (name === '' || name.startsWith('-'))
    throw new Usage(`what to do comes first: ${known.join(', ')}; ${seeHelp('fence')}`)
  throw new Usage(`there is no holdfast fence ${name}${suggest(name, known)}; ${seeHelp('fence')}`)
}

/** Prints what makes the marks, or holds the writers of a table to them. */
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
  if (positionals.length > 0) throw new Usage(`fence sql has no arguments, only options; ${seeHelp('fence')}`)
  const { url = 'postgres://localhost', table, column, resource, epoch, leases } = values
  if (table === undefined && (column ?? resource ?? epoch) !== undefined)
    throw new Usage(`--column, --resource and --epoch are about the rows of a --table; ${seeHelp('fence')}`)
  if (table !== undefined && leases) throw new Usage('--leases is about the marks; print the rows of a --table apart')
  const row =
    table === undefined
      ? undefined
      : { table, column, resource, epoch: epoch === undefined ? undefined : Number(epoch) }
  process.stdout.write(await fenceSql(url, { leases, row }))
  return 0
}

/** Lists what each resource was shown. */
async function ls(args: string[]): Promise<number> {
  const { values, positionals } = parse('fence', args, PLACE)
  const prefix = atMostOne('fence', 'PREFIX', positionals) ?? ''
  return withMarks(values, async (marks, output) => {
    const records = await marks.list(prefix)
    const rows = records.map(({ resource, part, epoch, token, raisedAt }) => {
      return [resource, `${epoch}`, `${token}`, new Date(raisedAt).toISOString(), part ?? '']
    })
    const titles = ['RESOURCE', 'EPOCH', 'TOKEN', 'RAISED', 'PART']
    output.print(records, rows.length > 0 ? table(titles, rows) : 'nothing was shown a token')
    return 0
  })
}

/** Begins another epoch. */
async function advance(args: string[]): Promise<number> {
  const { values, positionals } = parse('fence', args, PLACE)
  const resource = one('fence', 'RESOURCE', positionals)
  return withMarks(values, async (marks, output) => {
    const epoch = await marks.advance(resource)
    const text =
      epoch === undefined
        ? `${resource} has no mark: see holdfast fence ls`
        : `${resource} is in epoch ${epoch}: it refuses all whose fence has a lower one.\n` +
          `Give { epoch: ${epoch} } to every fence of ${resource}, and let no program of before go on with that.`
    output.print({ resource, advanced: epoch !== undefined, epoch }, text)
    return epoch === undefined ? EXIT.free : 0
  })
}

/** Forgets what was not raised for long. */
async function prune(args: string[]): Promise<number> {
  const { values, positionals } = parse('fence', args, { ...PLACE, 'older-than': { type: 'string' } })
  const prefix = atMostOne('fence', 'PREFIX', positionals) ?? ''
  const olderThan = parseAge(values['older-than'])
  return withMarks(values, async (marks, output) => {
    const pruned = await marks.prune(olderThan, prefix)
    const which = prefix ? ` of resources that begin with ${prefix}` : ''
    const text =
      pruned === 0
        ? `no marks${which} are older than ${values['older-than']}: nothing was removed`
        : `removed ${pruned} ${pruned === 1 ? 'mark' : 'marks'}: a holder that has been paused for longer can write again`
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
    throw new Usage('--url must say where the fenced data and its marks are, such as postgres://host/database')
  await using marks = await openMarks(url)
  return await work(marks, new Output(values))
}

const HOUR = 3_600_000

/** Milliseconds of `90d` or `36h`. */
function parseAge(text: string | undefined): number {
  const [, count, unit] = /^(\d{1,6})([dh])$/.exec(text ?? '') ?? []
  if (count === undefined)
    throw new Usage('--older-than must say how long a mark was not raised, in days or hours, such as 90d')
  return Number(count) * (unit === 'd' ? 24 * HOUR : HOUR)
}
