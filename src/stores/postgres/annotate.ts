import type { Names } from './names.ts'

const TIME = 'extract(epoch from clock_timestamp()) * 1000'

/** What was not held then is not locked either: a claim that takes its place would have to ask again. */
const HELD = 'l.expires_at > statement_timestamp() and l.ttl > 0'

/**
 * The statement for a batch of notes. Input: `[{i, name, id, note, until}]`; output: `[time, [answer, …]]`. It is not a
 * function, so it needs no migration.
 *
 * It reads the state at its start, so a lease that it finds lost was lost by then. It checks the deadline of each write by
 * the clock, once the row is locked.
 */
export function annotate({ lease, shared }: Names): string {
  const noted = (kind: string, table: string): string => `own_${kind} as (
  select a.* from asked a join ${table} l on l.name = a.name and l.id = a.id where ${HELD}
  order by l.name for no key update of l skip locked
), noted_${kind} as (
  update ${table} l set note = o.note from own_${kind} o
  where l.name = o.name and l.id = o.id and l.expires_at > clock_timestamp() and l.ttl > 0 and o.until >= ${TIME}
  returning o.i
)`
  const held = (table: string): string =>
    `exists (select from ${table} l where l.name = a.name and l.id = a.id and ${HELD})`
  return `with asked as materialized (
  select * from json_to_recordset($1::json) as a(i integer, name text, id text, note text, until double precision)
), ${noted('alone', lease)}, ${noted('shared', shared)}
select json_build_array(${TIME}, (
  select json_agg(json_build_array(case
    when i in (select i from noted_alone union all select i from noted_shared) then 'noted'
    when until < ${TIME} then 'late'
    when ${held(lease)} or ${held(shared)} then 'skipped'
    else 'lost'
  end) order by i)
  from asked a
), (
  select set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off'
))::text, $0`
}
