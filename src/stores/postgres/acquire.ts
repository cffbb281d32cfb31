import type { Names } from './names.ts'
import { BEGIN, DURABLE, FLOOR, FORGETFUL, LAST_TOKEN, ms, NOW, SETTINGS } from './sql.ts'

/**
 * The function for a batch of acquires. Input: `[{i, name, id, owner, note, ttl, queue, slot_limit, units, round_trip,
 * until}]`; output: `[time, [answer, …]]`.
 */
export function acquire({ lease, line, call }: Names): string {
  const orders = `json_to_recordset(_orders) as a(i integer, name text collate "C", id text, owner text, note text, ttl integer, queue boolean,
    slot_limit integer, units integer, round_trip integer, until double precision)`
  const alone = (condition: string): string => `
    select distinct on (a.name) a.* from ${orders}
    where a.slot_limit = 1 and a.until >= extract(epoch from clock_timestamp()) * 1000 and ${condition}
      and not exists (select from ${line} w where w.name = a.name)
    order by a.name, a.i`
  return `create or replace function ${call('acquire')}(orders text, _channel text) returns text ${SETTINGS}
declare
  _orders constant json := orders;
  ${NOW}
  ${FLOOR}
  _names text[];
  _done integer[];
  _answers json[];
  _later double precision;
  _order record;
  _isGranted boolean;
${BEGIN}
  -- Claims of limit 1 for free names without waiters: nearly always there is nothing else to do. The second statement also
  -- sees what was committed since the rows were read, such as the withdrawal of a claim.
  select array_agg(name) into _names from (
    select l.name from ${orders} join ${lease} l on l.name = a.name
    where a.slot_limit = 1 and a.until >= _time and not l.shared and l.token < ${LAST_TOKEN} and (l.id is null or l.expires_at <= _now)
      and not exists (select from ${line} w where w.name = a.name)
    order by l.name for update of l skip locked
  ) locked;
  if _names is not null then
    with taken as (
      update ${lease} l set id = k.id, owner = k.owner, note = k.note, token = greatest(l.token + 1, _floor), ttl = k.ttl,
        expires_at = _now + ${ms('k.ttl')}
      from (${alone('a.name = any (_names)')}) k where l.name = k.name
      returning k.i, l.token
    )
    select array_agg(i), array_agg(json_build_array('held', token::text)) from taken into _done, _answers;
  end if;
  if coalesce(cardinality(_done), 0) < json_array_length(_orders) then
    -- A withdrawal inserts or locks the row. So this statement sees the withdrawn claim, or conflicts on the name.
    with made as (
      insert into ${lease} (name, id, owner, note, token, ttl, expires_at)
      select name, id, owner, note, _floor, ttl, _now + ${ms('ttl')}
      from (${alone(`not exists (select from ${lease} l where l.name = a.name)`)}) k
      on conflict (name) do nothing returning name
    )
    select array_agg(name) into _names from made;
    if _names is not null then
      -- Perhaps it waited for another transaction.
      _later := extract(epoch from clock_timestamp()) * 1000;
      update ${lease} l set id = null, ttl = 0, expires_at = _now from ${orders}
      where l.name = any (_names) and l.name = a.name and l.id = a.id and a.until < _later;
      select _done || array_agg(i), _answers || array_agg(
        case when a.until < _later then '["late"]' else json_build_array('held', l.token::text) end)
      from ${orders} join ${lease} l on l.name = a.name and (l.id = a.id or l.id is null and a.until < _later)
      where l.name = any (_names) into _done, _answers;
    end if;
    -- Releases lock positions in this order, too.
    for _order in
      select a.* from ${orders} left join ${line} w on w.name = a.name and w.id = a.id
      where a.i <> all (coalesce(_done, '{}')) order by a.name, w.seq, a.i
    loop
      _done := _done || _order.i;
      _answers := array_append(_answers, ${call('decide')}(_order.name, _order.id, _order.owner, _order.note, _order.ttl,
        _order.queue, _order.slot_limit, _order.units, _order.round_trip, _order.until, _channel));
    end loop;
  end if;
  select bool_or(answer ->> 0 = 'held') from unnest(_answers) answer into _isGranted;
  if _isGranted then
    ${DURABLE}
  else
    ${FORGETFUL}
  end if;
  return json_build_array(_time, (select json_agg(answer order by i) from unnest(_done, _answers) as found(i, answer)))::text;
end $holdfast$;`
}
