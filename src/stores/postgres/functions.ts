import { LONGEST_REQUEST, TURN } from '../../contract/time.ts'
import type { Names } from './names.ts'
import {
  BEGIN,
  DURABLE,
  FLOOR,
  FORGETFUL,
  LAST_TOKEN,
  MOST_LAPSED,
  ms,
  NOW,
  QUEUE,
  roundTrips,
  SETTINGS,
  since,
} from './sql.ts'

/** For how long an unused name keeps its last token. */
const MEMORY = '24 hours'

/** In: `[{i, name, id, ttl, until}]`. */
export function renew({ lease, call }: Names): string {
  return `
create or replace function ${call('renew')}(orders text) returns text ${SETTINGS}
declare
  _orders constant json := orders;
  ${NOW}
  _answers json;
${BEGIN}
  ${DURABLE}
  with asked as materialized (
    select a.* from json_to_recordset(_orders) as a(i integer, name text, id text, ttl integer, until double precision)
  ), own as (
    select a.i, l.name, a.ttl from asked a join ${lease} l on l.name = a.name
    where a.until >= _time and l.id = a.id and l.expires_at > _now
    order by l.name for no key update of l skip locked
  ), renewed as (
    -- By the clock after the lock: by _now, the lease might end sooner than by a later request that was carried out first.
    update ${lease} l set ttl = o.ttl, expires_at = clock_timestamp() + ${ms('o.ttl')} from own o where l.name = o.name
    returning o.i, l.token
  )
  select json_agg(answer order by i) into _answers from (
    select i, json_build_array('held', token::text) as answer from renewed
    union all
    select a.i, case
      when a.until < _time then json_build_array('late')
      when l.name is not null then json_build_array('skipped')
      else json_build_array('lost')
    end from asked a left join ${lease} l on l.name = a.name and l.id = a.id and l.expires_at > _now
    where a.i not in (select i from renewed)
  ) found;
  return json_build_array(_time, _answers)::text;
end $holdfast$;`
}

/**
 * Keeps waiters of one process for `_lifetime` ms. Out: `[time, ms until the name is free, position of the first of them, its
 * id, ids of those that have no position]`. A join instead of the loop read the whole queue for each of them, because its plan
 * is made while the table is small.
 */
export function keep({ lease, line, call }: Names): string {
  const own = 'name = _name and id = _id and not gone and lapses_at > _now'
  const before = `${QUEUE} = _name and seq < _first and not gone and lapses_at > _now`
  return `
create or replace function ${call('keep')}(_name text, _lifetime integer, ids text, _round_trip integer) returns text ${SETTINGS}
declare
  ${NOW}
  _id text;
  _seq bigint;
  _first bigint;
  _lost text[] := '{}';
${BEGIN}
  ${FORGETFUL}
  foreach _id in array string_to_array(ids, ' ') loop
    with k as (
      select name, id from ${line} where ${own} for no key update skip locked
    )
    update ${line} w set lapses_at = _now + ${ms('_lifetime')}, round_trip = _round_trip
    from k where w.name = k.name and w.id = k.id returning seq into _seq;
    if _seq is null then
      -- A waiter whose row is locked asks or leaves just now.
      select seq into _seq from ${line} where ${own};
    end if;
    if _seq is null then
      _lost := _lost || _id;
    end if;
    _first := least(_first, _seq);
  end loop;
  -- Whatever lapsed is read by each request for the name. Crowds that time out, or die, leave thousands.
  delete from ${line} w using (
    select name, id from ${line} where ${QUEUE} = _name and lapses_at <= _now limit ${MOST_LAPSED} for update skip locked
  ) k where w.name = k.name and w.id = k.id;
  -- The clock was set back: as in acquire.
  update ${lease} l set expires_at = clock_timestamp() + ${ms('l.ttl')} from (
    select name from ${lease} where name = _name and expires_at > clock_timestamp() + ${ms('ttl')}
    for no key update skip locked
  ) k where l.name = k.name;
  return json_build_array(_time,
    (select ${since('expires_at')} + case when id is null or expires_at <= _now then ${roundTrips(line, before)} else 0 end
      from ${lease} where name = _name),
    (select count(*) from ${line} where ${before}),
    (select id from ${line} where ${QUEUE} = _name and seq = _first),
    _lost)::text;
end $holdfast$;`
}

/** In: `[{i, name, id}]`. */
export function release({ lease, line, call }: Names): string {
  const orders = 'json_to_recordset(_orders) as a(i integer, name text, id text)'
  return `
create or replace function ${call('release')}(orders text) returns text ${SETTINGS}
declare
  _orders constant json := orders;
  ${NOW}
  _count constant integer := json_array_length(_orders);
  _freed text[];
  _left text[];
  _done integer[];
  _rest integer[];
  _marked integer[];
  _name text;
${BEGIN}
  ${FORGETFUL}
  with asked as materialized (
    select a.* from ${orders}
  ), own as (
    select a.i, l.name from asked a join ${lease} l on l.name = a.name
    where l.id = a.id and l.expires_at > _now
    order by l.name for no key update of l skip locked
  ), freed as (
    update ${lease} l set id = null, ttl = 0, expires_at = _now from own o where l.name = o.name
    returning o.i, l.name
  ), left_line as (
    delete from ${line} w using asked a where w.name = a.name and w.id = a.id and not w.gone
    returning a.i, w.name, w.lapses_at
  )
  select (select array_agg(name) from freed), (select array_agg(name) from left_line),
    array(select i from freed union select i from left_line where lapses_at > _now)
  into _freed, _left, _done;

  if cardinality(_done) < _count then
    _rest := array(select i from ${orders} where i <> all (_done));
    -- Neither holder nor waiter: its request may still arrive. Both requests lock the row of the name.
    insert into ${lease} (name, token, ttl, expires_at)
    select distinct name, 0, 0, to_timestamp(0) from ${orders}
    where i = any (_rest) and not exists (select from ${lease} l where l.name = a.name) order by name
    on conflict (name) do nothing;
    with anchors as (
      select l.name, l.id, l.expires_at from ${lease} l
      where l.name in (select name from ${orders} where i = any (_rest))
      order by l.name for no key update of l skip locked
    ), marked as (
      insert into ${line} as w (name, id, owner, note, asked_at, lapses_at, gone)
      select distinct a.name, a.id, '', '', _now, _now + ${ms(String(LONGEST_REQUEST))}, true
      from ${orders} join anchors n on n.name = a.name
      where i = any (_rest) and (n.id is distinct from a.id or n.expires_at <= _now)
      on conflict (name, id) do update set gone = true, lapses_at = excluded.lapses_at
      returning w.name, w.id
    )
    select array(select a.i from ${orders} join marked m on m.name = a.name and m.id = a.id) into _marked;
  end if;

  for _name in
    select l.name from ${lease} l where l.name = any (_freed || _left) and (l.id is null or l.expires_at <= _now)
      and exists (select from ${line} w where ${QUEUE} = l.name and not w.gone and w.lapses_at > _now and w.channel is not null)
  loop
    perform ${call('wake')}(_name, _now);
  end loop;
  if cardinality(_done) = _count then
    return json_build_array(_time, array_fill('released'::text, array[_count, 1]))::text;
  end if;
  return (
    select json_build_array(_time, json_agg(case
      when i = any (_done) then json_build_array('released')
      when i = any (_marked) then json_build_array('unknown')
      else json_build_array('skipped')
    end order by i)) from ${orders}
  )::text;
end $holdfast$;`
}

/** `_of`: the token of the lease to end; empty: of any. */
export function breakLease({ lease, call }: Names): string {
  const held = "name = _name and id is not null and expires_at > _now and _of in ('', token::text)"
  return `
create or replace function ${call('break')}(_name text, _by text, _until double precision, _of text) returns text ${SETTINGS}
declare
  ${NOW}
  ${FLOOR}
  _token bigint;
${BEGIN}
  ${DURABLE}
  if _until < _time then
    return json_build_array(_time, json_build_array(json_build_array('late')))::text;
  end if;
  perform from ${lease} where ${held};
  if not found then
    return json_build_array(_time, json_build_array(json_build_array('lost')))::text;
  end if;
  perform from ${lease} where ${held} for update skip locked;
  if not found then
    return json_build_array(_time, json_build_array(json_build_array('skipped')))::text;
  end if;
  update ${lease} set id = null, ttl = 0, expires_at = _now, token = greatest(token + 1, _floor), broken_by = _by
  where name = _name and token < ${LAST_TOKEN}
  returning token into _token;
  if not found then
    return json_build_array(_time, json_build_array(json_build_array('exhausted')))::text;
  end if;
  perform ${call('wake')}(_name, _now);
  return json_build_array(_time, json_build_array(json_build_array('held', _token::text)))::text;
end $holdfast$;`
}

/**
 * Wakes the first waiter that has a channel. If it has not asked recently it may be paused: so the first waiter of another
 * process is also notified, to ask after the grace periods before it.
 */
export function wake({ line, call }: Names): string {
  return `
create or replace function ${call('wake')}(_name text, _now timestamptz) returns void ${SETTINGS}
declare
  _waiter record;
  _first text;
  _asked timestamptz;
begin
  for _waiter in
    select id, channel, asked_at, row_number() over (order by seq) - 1 as ahead,
      sum(round_trip) over (order by seq) - round_trip as later from ${line}
    where ${QUEUE} = _name and not gone and lapses_at > _now order by seq limit 10
  loop
    if _waiter.channel is null then continue; end if;
    if _first is null then
      perform pg_notify(_waiter.channel, _waiter.id);
      _first := _waiter.channel;
      _asked := _waiter.asked_at;
      -- It is in the future after the clock was set back.
      exit when _asked between _now - ${ms(String(TURN))} and _now + ${ms(String(TURN))};
    elsif _waiter.channel <> _first then
      perform pg_notify(_waiter.channel, _waiter.id || ' ' || _waiter.ahead * ${TURN} + _waiter.later);
      exit;
    end if;
  end loop;
end $holdfast$;`
}

/** Deletes idle rows among the next `_count` names, and answers where to continue. */
export function prune({ lease, line, call }: Names): string {
  return `
create or replace function ${call('prune')}(_after text, _count integer) returns text ${SETTINGS}
declare
  ${NOW}
  ${FLOOR}
  _last text;
${BEGIN}
  ${FORGETFUL}
  select max(name) into _last from (select name from ${lease} where name > _after order by name limit _count) page;
  delete from ${line} w using (
    select name, id from ${line} where name > _after and name <= _last and lapses_at <= _now for update skip locked
  ) k where w.name = k.name and w.id = k.id;
  delete from ${lease} l using (
    select name from ${lease} x where name > _after and name <= _last and expires_at < _now - interval '${MEMORY}'
      and token < _floor - 86400000000 and not exists (select from ${line} w where w.name = x.name)
    order by name for update skip locked
  ) k where l.name = k.name;
  return coalesce(_last, '');
end $holdfast$;
`
}
