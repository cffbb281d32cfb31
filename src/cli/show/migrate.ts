import { migrate as migrateStore, migration } from '../../migrate.ts'
import { COMMON, parse, seeHelp } from '../arguments.ts'
import { Usage } from '../failure.ts'
import { Output } from '../output.ts'
import { storeUrl } from '../store-url.ts'

/** `holdfast migrate`: creates the tables that a store needs, or prints their SQL. Returns the exit code. */
export async function migrate(args: readonly string[]): Promise<number> {
  const options = { ...COMMON, 'print-sql': { type: 'boolean' }, fence: { type: 'boolean' } } as const
  const { values, positionals } = parse('migrate', [...args], options)
  if (positionals.length > 0) throw new Usage(`migrate takes options only; ${seeHelp('migrate')}`)
  const output = new Output(values)
  const isSql = values['print-sql'] === true
  const isDefault = isSql && (values.store ?? process.env.HOLDFAST_STORE) === undefined
  const url = isDefault ? 'postgres://localhost' : storeUrl(values.store, output)
  const { fence } = values
  const nothing = `nothing to do: a store of ${url.slice(0, url.indexOf(':'))} creates what it needs itself`
  if (isSql) {
    const sql = await migration(url, { fence })
    if (sql === undefined)
      output.info('nothing', nothing) // not on standard output: the SQL is usually written to a file
    else output.printSql(sql)
    return 0
  }
  const tables = await migrateStore(url, { fence })
  const text = tables.map(table => `${table} is ready`).join('\n')
  output.print({ migrated: tables.length > 0, tables }, text || nothing)
  return 0
}
