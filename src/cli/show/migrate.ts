import { migrate as migrateStore, migration } from '../../index.ts'
import { COMMON, parse, seeHelp } from '../arguments.ts'
import { Usage } from '../failure.ts'
import { Output } from '../output.ts'
import { storeUrl } from '../store-url.ts'

/** `holdfast migrate`: creates the tables that a store needs, or prints their SQL. Returns the exit code. */
export async function migrate(args: readonly string[]): Promise<number> {
  const options = { ...COMMON, 'print-sql': { type: 'boolean' } } as const
  const { values, positionals } = parse('migrate', [...args], options)
  if (positionals.length > 0) throw new Usage(`migrate takes options only; ${seeHelp('migrate')}`)
  const output = new Output(values)
  const isSql = values['print-sql'] === true
  const isDefault = isSql && (values.store ?? process.env.HOLDFAST_STORE) === undefined
  const url = isDefault ? 'postgres://localhost' : storeUrl(values.store, output)
  const done = isSql ? await migration(url) : await migrateStore(url)
  if (done === undefined) {
    const text = `nothing to do: a store of ${url.slice(0, url.indexOf(':') + 1)} creates what it needs itself`
    // The SQL is usually written to a file.
    if (isSql) output.info('nothing', text)
    else output.print({ migrated: false }, text)
  } else if (isSql) output.printSql(done)
  else output.print({ migrated: true, table: done }, `${done} is ready`)
  return 0
}
