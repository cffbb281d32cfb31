import { openerOf } from '../connect.ts'
import { COMMON, parse, seeHelp } from './arguments.ts'
import { Usage } from './failure.ts'
import { Output } from './output.ts'
import { storeUrl } from './where.ts'

const POSTGRES = /^postgres(ql)?:/i

/** `holdfast migrate`: makes what a store must have before it is used, or prints how. */
export async function migrate(args: readonly string[]): Promise<number> {
  const options = { ...COMMON, 'print-sql': { type: 'boolean' } } as const
  const { values, positionals } = parse('migrate', [...args], options)
  if (positionals.length > 0) throw new Usage(`migrate has no arguments, only options; ${seeHelp('migrate')}`)
  const output = new Output(values)
  const isSql = values['print-sql'] === true
  if (isSql && (values.store ?? process.env.HOLDFAST_STORE) === undefined) return print('postgres://localhost')
  const url = storeUrl(values.store, output)
  if (isSql && POSTGRES.test(url)) return print(url)
  openerOf(url) // or a mistyped scheme would mean that all is well
  if (!POSTGRES.test(url)) {
    const text = `a store of ${url.slice(0, url.indexOf(':') + 1)} makes by itself what it needs: nothing is to be done`
    output.print({ migrated: false }, text)
    return 0
  }
  const { migrateUrl } = await import('../stores/postgres/open.ts')
  const table = await migrateUrl(url)
  output.print({ migrated: true, table }, `${table} is ready`)
  return 0
}

async function print(url: string): Promise<number> {
  const { migrationOf } = await import('../stores/postgres/open.ts')
  process.stdout.write(migrationOf(url))
  return 0
}
