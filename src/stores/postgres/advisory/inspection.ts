import type { LeaseRecord, Query } from '../../../contract/store.ts'
import { LAST } from '../inspection.ts'
import type { Names } from '../names.ts'
import type { Session } from './session.ts'

/** The number of names in one read. */
const PAGE = 500

type Row = readonly [name: string, token: string, owner: string, note: string, ttl: number]

/** Yields the holders. Only their own process knows how much of the ttl remains, so the whole ttl is shown. */
export async function* inspection(
  session: Session,
  { tokens }: Names,
  query: Query,
  signal: AbortSignal,
): AsyncIterable<LeaseRecord> {
  const [first, last] = 'name' in query ? [query.name, query.name] : [query.prefix, query.prefix + LAST]
  const statement = `with locks as materialized (
  select (classid::bigint << 32) | objid::bigint as key from pg_locks
  where locktype = 'advisory' and granted and objsubid = 1
    and database = (select oid from pg_database where datname = current_database())
), page as (
  select * from ${tokens} where name >= $1 and name <= $2 and key in (select key from locks) order by name limit ${PAGE}
)
select coalesce(json_agg(json_build_array(name, token::text, owner, note, ttl) order by name), '[]')::text, $0 from page`
  for (let from = first; ; ) {
    const rows = JSON.parse(String(await session.ask(statement, [from, last]))) as Row[]
    signal.throwIfAborted()
    for (const [name, token, owner, note, remaining] of rows)
      yield { name, state: 'held', token: BigInt(token), owner, note, remaining }
    const end = rows[PAGE - 1]?.[0]
    if (end === undefined) return
    from = `${end}\u0001`
  }
}
