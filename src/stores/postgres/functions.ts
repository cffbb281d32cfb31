import type { Names } from './names.ts'
import { BEGIN, DURABLE, FLOOR, FORGETFUL, LAST_TOKEN, MOST_LAPSED, ms, NOW, QUEUE, SETTINGS } from './sql.ts'
import { fits, IS_OLD, IS_PASSABLE, NEXT_CHANGE, readState } from './state.ts'

/** The time for which an unused name keeps its last token. */
const MEMORY = '24 hours'

/** The function for a batch of renewals. Input: `[{i, name, id, ttl, until}]`. */
export function renew({ lease, shared, call }: Names): string {
  // A lease that was released since _now has ended. Only its ttl of 0 shows that with any clock.
  const own = (table: string): string => `
    select a.i, l.name, l.id, a.ttl from asked a join ${table} l on l.name = a.name and l.id = a.id
    where a.until >= extract(epoch from clock_timestamp()) * 1000 and l.expires_at > greatest(_now, clock_timestamp()) and l.ttl > 0
    order by l.name for no key update of l skip locked`
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
  ), own as (${own(lease)}
  ), own_shared as (${own(shared)}
  ), renewed as (
    -- By the clock after the lock: by _now, the lease might end sooner than by a later request that was carried out first.
    update ${lease} l set ttl = o.ttl, expires_at = clock_timestamp() + ${ms('o.ttl')} from own o where l.name = o.name
    returning o.i, l.token
  ), renewed_shared as (
    update ${shared} l set ttl = o.ttl, expires_at = clock_timestamp() + ${ms('o.ttl')} from own_shared o
    where l.name = o.name and l.id = o.id returning o.i, l.token, l.slots
  )
  select json_agg(answer order by i) into _answers from (
    select i, json_build_array('held', token::text) as answer from renewed
    union all
    select i, json_build_array('held', token::text, slots) from renewed_shared
    union all
    select a.i, case
      when a.until < _time then json_build_array('late')
      when l.name is not null or s.name is not null then json_build_array('skipped')
      else json_build_array('lost')
    end from asked a
    left join ${lease} l on l.name = a.name and l.id = a.id and l.expires_at > _now
    left join ${shared} s on s.name = a.name and s.id = a.id and s.expires_at > _now and s.ttl > 0
    where a.i not in (select i from renewed) and a.i not in (select i from renewed_shared)
  ) found;
  return json_build_array(_time, _answers)::text;
end $holdfast$;`
}

/**
 * The function that keeps waiters of one process for `_lifetime` ms. Output: `[time, ms until the first of them may be
 * granted if nothing is released, its position, its id, ids of those that have no position]`. It uses a loop, because a
 * join read the whole queue for each waiter: its plan was made while the table was small.
 */
export function keep(names: Names): string {
  const { lease, line, call } = names
  const own = 'name = _name and id = _kept and not gone and lapses_at > _now'
  return `
create or replace function ${call('keep')}(_name text, _lifetime integer, ids text) returns text ${SETTINGS}
declare
  ${NOW}
  _kept text;
  _id text;
  _seq bigint;
  _first bigint;
  _lost text[] := '{}';
  _s record;
  _isReviewed boolean := false;
  _changes integer;
${BEGIN}
  ${FORGETFUL}
  foreach _kept in array string_to_array(ids, ' ') loop
    with k as (
      select name, id from ${line} where ${own} for no key update skip locked
    )
    update ${line} w set lapses_at = _now + ${ms('_lifetime')}, passed = false
    from k where w.name = k.name and w.id = k.id returning seq into _seq;
    if _seq is null then
      -- A waiter whose row is locked asks or leaves just now.
      select seq into _seq from ${line} where ${own};
    end if;
    if _seq is null then
      _lost := _lost || _kept;
    elsif _first is null or _seq < _first then
      _first := _seq;
      _id := _kept;
    end if;
  end loop;
  -- Whatever lapsed is read by each request for the name. Crowds that time out, or die, leave thousands.
  delete from ${line} w using (
    select name, id from ${line} where ${QUEUE} = _name and lapses_at <= _now and (gone or passed) limit ${MOST_LAPSED} for update skip locked
  ) k where w.name = k.name and w.id = k.id;
  ${readState(names)};
  if ${IS_OLD} then
    perform from ${lease} where name = _name for update skip locked;
    if found then
      _changes := ${call('review')}(_name, _s.is_holder_old, _s.are_shared_old, _s.is_queue_old);
      if _changes > 0 then
        perform ${call('wake')}(_name, _now, _changes = 2, null);
      end if;
      _isReviewed := true;
      ${readState(names)};
    end if;
  end if;
  return json_build_array(_time,
    case when ${fits('_s.own_limit', '_s.own_units')} and (_s.ahead = 0 or ${IS_PASSABLE}) then 0 else ${NEXT_CHANGE} end,
    _s.ahead, _id, _lost)::text;
end $holdfast$;`
}

/**
 * The function for a break. `_of` and `_slot` are the token and a slot of the lease to end. If they are empty, any lease
 * ends. If no higher token is left, the leases end all the same.
 */
export function breakLease({ lease, shared, call }: Names): string {
  const held = "name = _name and id is not null and expires_at > _now and ttl > 0 and _of in ('', token::text)"
  const isAlone = `exists (select from ${lease} where ${held} and _slot in ('', '0'))`
  const holds = `from ${shared} where ${held} and (_slot = '' or _slot::integer = any (slots))`
  const answer = (...values: string[]): string =>
    `return json_build_array(_time, json_build_array(json_build_array(${values})))::text;`
  return `
create or replace function ${call('break')}(_name text, _until double precision, _of text, _slot text) returns text ${SETTINGS}
declare
  ${NOW}
  ${FLOOR}
  _isAlone boolean;
  _isUsedUp boolean;
  _ids text[];
  _token bigint;
${BEGIN}
  ${DURABLE}
  if _until < _time then
    ${answer("'late'")}
  end if;
  if not ${isAlone} and not exists (select ${holds}) then
    ${answer("'lost'")}
  end if;
  select token >= ${LAST_TOKEN} from ${lease} where name = _name for update skip locked into _isUsedUp;
  if not found then
    ${answer("'skipped'")}
  end if;
  _isAlone := ${isAlone};
  _ids := array(select id ${holds});
  if not _isAlone and _ids = '{}' then
    ${answer("'lost'")}
  end if;
  if (select count(*) from (select ${holds} for update skip locked) locked) < cardinality(_ids) then
    ${answer("'skipped'")}
  end if;
  update ${lease} set id = null, ttl = 0, expires_at = _now,
    token = case when _isUsedUp then token else greatest(token + 1, _floor) end
  where name = _name returning token into _token;
  delete from ${shared} where name = _name and id = any (_ids);
  perform ${call('wake')}(_name, _now, true, null);
  if _isUsedUp then
    ${answer("'exhausted'")}
  end if;
  ${answer("'held'", '_token::text')}
end $holdfast$;`
}

/** The function that deletes idle rows among the next `_count` names, and answers where to continue. */
export function prune({ lease, shared, line, call }: Names): string {
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
    select name, id from ${line} where name > _after and name <= _last and lapses_at <= _now
      and (gone or lapses_at < _now - interval '${MEMORY}') for update skip locked
  ) k where w.name = k.name and w.id = k.id;
  delete from ${shared} s using (
    select name, id from ${shared} where name > _after and name <= _last and expires_at < _now - interval '${MEMORY}' for update skip locked
  ) k where s.name = k.name and s.id = k.id;
  delete from ${lease} l using (
    select name from ${lease} x where name > _after and name <= _last and expires_at < _now - interval '${MEMORY}'
      and token < _floor - 86400000000 and not exists (select from ${line} w where w.name = x.name)
      and not exists (select from ${shared} s where s.name = x.name)
    order by name for update skip locked
  ) k where l.name = k.name;
  return coalesce(_last, '');
end $holdfast$;
`
}
