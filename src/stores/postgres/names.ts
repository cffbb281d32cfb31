import { checkText, invalid, show } from '../../contract/check.ts'

/** The format of the tables and functions. The first change of a table or function after a release raises it. README.md describes it. */
export const FORMAT = 2

/** The schema and table in which leases are stored. */
export interface Tables {
  /** The schema of the tables and functions. @default 'holdfast' */
  readonly schema?: string | undefined
  /** The table of leases. The names of the other objects begin with its name and `_`. @default 'lease' */
  readonly table?: string | undefined
}

/** The names of the store's objects, quoted for SQL. */
export interface Names {
  readonly schema: string
  readonly lease: string
  /** The table of holders whose limit is above 1. */
  readonly shared: string
  readonly line: string
  readonly index: string
  /** The table of the last tokens of advisory locks. */
  readonly tokens: string
  /**
   * The name of a function. It contains the format number, so that versions with different functions can share the tables.
   */
  call(verb: string): string
}

/** Throws `INVALID_ARGUMENT` for names that PostgreSQL would truncate or that are unsafe in SQL. */
export function namesOf({ schema = 'holdfast', table = 'lease' }: Tables): Names {
  check(schema, 'schema')
  check(table, 'table')
  const name = (part: string): string => `"${schema}"."${table}${part}"`
  return {
    schema: `"${schema}"`,
    lease: name(''),
    shared: name('_shared'),
    line: name('_line'),
    index: `"${table}_line_queue"`,
    tokens: name('_token'),
    call: verb => name(`_${verb}_${FORMAT}`),
  }
}

function check(name: unknown, what: string): void {
  checkText(name, `the ${what}`)
  if (/^[a-z_][a-z0-9_]{0,39}$/.test(name)) return
  throw invalid(`the ${what} must be 1 to 40 of a-z, 0-9 and _, and not begin with a digit, not ${show(name)}`)
}
