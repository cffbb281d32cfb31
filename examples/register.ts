/** A register over a table of PostgreSQL. The tests run the conformance suite over it. */
import type { Pool } from 'pg'
import type { Register } from '../src/stores/cas/index.ts'

export const TABLE = `create table if not exists lease_record (
  key text collate "C" primary key,
  value text not null,
  version uuid not null,
  written timestamptz not null
)`

const AGE = 'extract(epoch from clock_timestamp() - written) * 1000'
const COLUMNS = `value, version, (${AGE})::float8 as age`

export function sqlRegister(pool: Pool): Register<string> {
  return {
    maxBytes: 1_000_000,
    knowsAge: true,

    async read(key) {
      const { rows } = await pool.query(`select ${COLUMNS} from lease_record where key = $1`, [key])
      return rows[0]
    },

    async write(key, value, expected) {
      const version = crypto.randomUUID() // never the same again, also after the row was deleted
      const { rowCount } = expected
        ? await pool.query(
            'update lease_record set value = $2, version = $3, written = clock_timestamp() where key = $1 and version = $4',
            [key, value, version, expected],
          )
        : await pool.query(
            'insert into lease_record values ($1, $2, $3, clock_timestamp()) on conflict (key) do nothing',
            [key, value, version],
          )
      return rowCount === 1 ? version : undefined
    },

    async *list(prefix) {
      for (let last = ''; ; ) {
        const { rows } = await pool.query(
          `select key, ${COLUMNS} from lease_record where starts_with(key, $1) and key > $2 order by key limit 1000`,
          [prefix, last],
        )
        if (rows.length === 0) return
        for (const { key, ...entry } of rows) yield { key, entry }
        last = rows.at(-1).key
      }
    },
  }
}
