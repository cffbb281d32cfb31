import { placeLifetime } from '../shared/queue.ts'
import type { Names } from './names.ts'
import {
  BEGIN,
  DURABLE,
  FLOOR,
  FORGETFUL,
  LAST_SEQ,
  LAST_TOKEN,
  MOST_LAPSED,
  ms,
  NOW,
  QUEUE,
  roundTrips,
  SETTINGS,
  since,
  turnAfter,
} from './sql.ts'

/** The largest number of waiters ahead that is counted. Without it, the cost of a crowd is the square of its size. */
const MOST_AHEAD = 200

/** In: `[{i, name, id, owner, note, ttl, queue, round_trip, until}]`; out: `[time, [answer, …]]`. */
export function acquire({ lease, line, call }: Names): string {
  const lifetime = ms(`greatest(ttl, ${placeLifetime(0)})`)
  const orders =
    'json_to_recordset(_orders) as a(i integer, name text, id text, owner text, note text, ttl integer, queue boolean, round_trip integer, until double precision)'
  const waits = `${QUEUE} = a.name and not w.gone and w.lapses_at > _now`
  const before = `${waits} and w.seq < coalesce(p.seq, ${LAST_SEQ})`
  const ahead = `(select count(*) from (select from ${line} w where ${before} limit ${MOST_AHEAD}) w)`
  const isFree = '(l.id is null or l.expires_at <= _now)'
  const later = `case when ${isFree} then ${roundTrips(line, before)} else 0 end as later`
  return `create or replace function ${call('acquire')}(orders text, _channel text) returns text ${SETTINGS}
declare
  _orders constant json := orders;
  ${NOW}
  ${FLOOR}
  _granted integer;
  _until double precision;
  _names text[];
  _future text[];
  _wrong text[];
  _answers json;
${BEGIN}
  -- Names that are free and have no waiters: nearly always there is nothing else to do.
  with asked as materialized (
    select a.*, l.token from ${orders} join ${lease} l on l.name = a.name
    where a.until >= _time and l.token < ${LAST_TOKEN} and (l.id is null or l.expires_at <= _now)
      and not exists (select from ${line} w where w.name = a.name)
  ), locked as (
    select a.* from asked a join ${lease} l on l.name = a.name
    where l.token = a.token and (l.id is null or l.expires_at <= _now)
    order by l.name for update of l skip locked
  ), taken as (
    update ${lease} l set id = k.id, owner = k.owner, note = k.note, token = greatest(l.token + 1, _floor), ttl = k.ttl,
      expires_at = _now + ${ms('k.ttl')}
    from locked k where l.name = k.name
    returning k.i, k.until, l.name, l.token
  )
  select json_agg(json_build_array('held', token::text) order by i), array_agg(name), min(until)
  into _answers, _names, _until from taken;
  if cardinality(_names) = json_array_length(_orders) and _until >= extract(epoch from clock_timestamp()) * 1000 then
    -- From here on, concurrent changes are visible, such as the withdrawal of a claim.
    perform from ${line} where name = any (_names);
    if not found then
      ${DURABLE}
      return json_build_array(_time, _answers)::text;
    end if;
  end if;

  with asked as materialized (
    select a.*, l.token, l.id as holder, l.expires_at, coalesce(l.id is not null and l.expires_at > _now, false) as held,
      l.expires_at > _now + ${ms('l.ttl')} as future, p.lapses_at, coalesce(p.gone, false) as gone,
      case when ${isFree} then ${ahead} end as ahead, ${later}
    from ${orders}
    left join ${lease} l on l.name = a.name
    left join ${line} p on p.name = a.name and p.id = a.id and p.lapses_at > _now
    where a.until >= _time
  ), free as materialized (
    select distinct on (name) * from asked
    where not gone and not held and (expires_at is null or _now >= least(expires_at, _now) + ${turnAfter('ahead')} + ${ms('later')})
    order by name, ahead, i
  ), locked as (
    select f.* from free f join ${lease} l on l.name = f.name
    where l.token = f.token and l.token < ${LAST_TOKEN} and (l.id is null or l.expires_at <= _now)
    order by l.name for update of l skip locked
  ), taken as (
    update ${lease} l set id = k.id, owner = k.owner, note = k.note, token = greatest(l.token + 1, _floor), ttl = k.ttl,
      expires_at = _now + ${ms('k.ttl')}
    from locked k where l.name = k.name
    returning l.name, l.id
  ), made as (
    insert into ${lease} (name, id, owner, note, token, ttl, expires_at)
    select name, id, owner, note, _floor, ttl, _now + ${ms('ttl')} from free where token is null order by name
    on conflict (name) do nothing returning name
  ), own as (
    select l.name, a.ttl from asked a join ${lease} l on l.name = a.name
    where a.held and a.holder = a.id and not a.gone and l.id = a.id
    order by l.name for no key update of l skip locked
  ), kept as (
    -- Not shorter, and no longer than it was: the clock may have been set back.
    update ${lease} l set expires_at = greatest(least(l.expires_at, clock_timestamp() + ${ms('l.ttl')}), _now + ${ms('o.ttl')}),
      ttl = greatest(o.ttl, least(l.ttl, ceil(${since('l.expires_at')})))
    from own o where l.name = o.name
    returning l.name
  ), joined as (
    insert into ${line} as w (name, id, owner, note, channel, asked_at, lapses_at, gone, round_trip)
    select name, id, owner, note, _channel, _now, _now + ${lifetime}, false, round_trip from (
      select distinct on (name, id) * from asked
      where queue and not gone and not (held and holder = id) and i not in (select i from free)
        -- It lasts longer if the clock was set back.
        and (lapses_at is null or lapses_at not between _now + 0.75 * ${lifetime} and _now + ${lifetime})
    ) new order by i
    on conflict (name, id) do update set channel = excluded.channel, asked_at = excluded.asked_at,
      lapses_at = excluded.lapses_at, round_trip = excluded.round_trip, gone = false, seq = case when w.lapses_at > _now then w.seq else excluded.seq end
    where not w.gone or w.lapses_at <= _now
  ), old as (
    select w.name, w.id from (
      select name, id from taken
      union all
      select w.name, w.id from taken t, lateral (
        select name, id, lapses_at from ${line} w where ${QUEUE} = t.name order by w.seq limit ${MOST_LAPSED}
      ) w where w.lapses_at <= _now
    ) k join ${line} w on w.name = k.name and w.id = k.id for update of w skip locked
  ), left_line as (
    delete from ${line} w using old o where w.name = o.name and w.id = o.id
  )
  select (select count(*) from taken) + (select count(*) from made) + (select count(*) from kept),
    _names || array(select name from taken) || array(select name from made),
    (select array_agg(name) from asked where future and holder is distinct from id)
  into _granted, _names, _future;

  if _granted > 0 then
    ${DURABLE}
  else
    ${FORGETFUL}
  end if;
  -- The clock was set back after these were written: nothing lasts longer than its ttl from now. Leases that were granted
  -- while this process was paused may also look so by _now.
  if _future is not null then
    update ${lease} l set expires_at = clock_timestamp() + ${ms('l.ttl')} from (
      select name from ${lease} where name = any (_future) and expires_at > clock_timestamp() + ${ms('ttl')}
      order by name for no key update skip locked
    ) k where l.name = k.name;
  end if;

  loop
    select json_agg(case
        when late then json_build_array('late')
        when gone then json_build_array('gone')
        when mine and expires_at >= _now + ${ms('asked_ttl')} then json_build_array('held', token::text)
        when mine then json_build_array('skipped')
        when token >= ${LAST_TOKEN} and not held then json_build_array('exhausted')
        else json_build_array('busy', ${since('expires_at')} + later, ahead, seq is not null,
          case when held then json_build_array(token::text, owner, note) end, coalesce(asked_at < _now, false))
      end order by i), array_agg(name) filter (where mine and (gone or late and name = any (_names)))
    into _answers, _wrong
    from (
      select a.i, a.name, a.ttl as asked_ttl, l.token, l.owner, l.note, l.expires_at, p.seq, p.asked_at, coalesce(p.gone, false) as gone,
        a.until < extract(epoch from clock_timestamp()) * 1000 as late,
        coalesce(l.id = a.id and l.expires_at > _now, false) as mine,
        coalesce(l.id is not null and l.expires_at > _now, false) as held,
        ${ahead} as ahead, ${later}
      from ${orders}
      left join ${lease} l on l.name = a.name
      left join ${line} p on p.name = a.name and p.id = a.id and p.lapses_at > _now
    ) found;
    -- Withdrawn, or stale, while it waited for a row that another transaction had locked. A grant to a later request of
    -- the same claim, before this one arrived, stays.
    exit when _wrong is null;
    update ${lease} l set id = null, ttl = 0, expires_at = _now
    from ${orders} where l.name = any (_wrong) and l.name = a.name and l.id = a.id;
  end loop;
  return json_build_array(_time, _answers)::text;
end $holdfast$;`
}
