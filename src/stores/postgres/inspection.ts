import type { LeaseRecord, Query } from '../../contract/store.ts'
import type { Connections } from '../wire/connections.ts'
import type { PostgresConnection } from './connection.ts'
import type { Names } from './names.ts'

/** The number of names in one read. */
const PAGE = 200

/** A text that sorts after every name. */
export const LAST: string = '\u{10ffff}'.repeat(64)

type Row = readonly [
  name: string,
  token: string | null,
  owner: string,
  note: string,
  remaining: number,
  limit: number,
  units: number,
  slots: number[] | null,
]

/** Yields holders, each followed by its waiters in order. */
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
    for (const [name, token, owner, note, remaining, limit, units, slots] of rows) {
      const position = positions.get(name) ?? 0
      if (token === null) positions.set(name, position + 1)
      const both = { name, owner, note, remaining, ...(limit > 1 && { limit }) }
      if (token === null) yield { ...both, state: 'waiting', position, ...(units > 1 && { units }) }
      else yield { ...both, state: 'held', token: BigInt(token), ...slotsOf(slots) }
    }
    from = next
  }
}

/** The slots as records and grants have them. */
export function slotsOf(slots: readonly number[] | null | undefined): { readonly slots?: readonly number[] } {
  return slots && (slots.length > 1 || slots[0] !== 0) ? { slots } : {}
}

/** The statement that reads the records of a page of names, holders first, and the start of the next page. */
function statement({ lease, shared, line }: Names): string {
  return `with t as materialized (
  select clock_timestamp() as now
), page as materialized (
  select name from t, ${lease} l where name >= $1 and name <= $2
    and (id is not null and expires_at > now or exists (
      select from ${shared} s where s.name = l.name and expires_at > now and ttl > 0
    ) or exists (
      select from ${line} w where w.name = l.name and not gone and lapses_at > now
    ))
  order by name limit ${PAGE}
), found as (
  select name, -1 as place, 0 as seq, token::text, owner, note, expires_at as until, 1 as slot_limit, 1 as units, null::integer[] as slots
  from t, ${lease} join page using (name)
  where id is not null and expires_at > now
  union all
  select name, -1, slots[1], token::text, owner, note, expires_at, slot_limit, 1, slots from t, ${shared} join page using (name)
  where expires_at > now and ttl > 0
  union all
  select name, 0, seq, null, owner, note, lapses_at, slot_limit, units, null from t, ${line} join page using (name)
  where not gone and lapses_at > now
)
select json_build_object(
  'rows', (select coalesce(json_agg(json_build_array(name, token, owner, note, extract(epoch from until - now) * 1000, slot_limit, units, slots)
    order by name, place, seq), '[]') from found, t),
  'next', (select max(name) || chr(1) from page having count(*) = ${PAGE})
)::text, $0`
}
