import type { LeaseRecord, Query } from '../../contract/store.ts'
import type { Connections } from '../shared/connections.ts'
import type { PostgresConnection } from './connection.ts'
import type { Names } from './names.ts'

/** Names read at once. */
const PAGE = 200

/** Sorts after every name. */
export const LAST: string = '\u{10ffff}'.repeat(64)

type Row = readonly [name: string, token: string | null, owner: string, note: string, remaining: number]

/** Holders, each followed by its waiters in order. */
export async function* inspection(
  connections: Connections<PostgresConnection>,
  names: Names,
  query: Query,
  signal: AbortSignal,
): AsyncIterable<LeaseRecord> {
  const [first, last] = 'name' in query ? [query.name, query.name] : [query.prefix, query.prefix + LAST]
  for (let from: string | null = first; from !== null; ) {
    if ('prefix' in query) query.sent?.(1)
    const values: string[] = [from, last]
    const text = await connections.run(connection => connection.askInTime(statement(names), values))
    signal.throwIfAborted()
    const { rows, next } = JSON.parse(String(text)) as { rows: Row[]; next: string | null }
    const positions = new Map<string, number>()
    for (const [name, token, owner, note, remaining] of rows) {
      const position = positions.get(name) ?? 0
      if (token === null) positions.set(name, position + 1)
      const both = { name, owner, note, remaining }
      yield token === null ? { ...both, state: 'waiting', position } : { ...both, state: 'held', token: BigInt(token) }
    }
    from = next
  }
}

/** The records of a page of names, holders first, and the start of the next page. */
function statement({ lease, line }: Names): string {
  return `with t as materialized (
  select clock_timestamp() as now
), page as materialized (
  select name from t, ${lease} l where name >= $1 and name <= $2
    and (id is not null and expires_at > now or exists (
      select from ${line} w where w.name = l.name and not gone and lapses_at > now
    ))
  order by name limit ${PAGE}
), found as (
  select name, 0 as seq, token::text, owner, note, expires_at as until from t, ${lease} join page using (name)
  where id is not null and expires_at > now
  union all
  select name, seq, null, owner, note, lapses_at from t, ${line} join page using (name)
  where not gone and lapses_at > now
)
select json_build_object(
  'rows', (select coalesce(json_agg(json_build_array(name, token, owner, note, extract(epoch from until - now) * 1000)
    order by name, seq), '[]') from found, t),
  'next', (select max(name) || chr(1) from page having count(*) = ${PAGE})
)::text, $0`
}
