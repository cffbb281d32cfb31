import { TURN } from '../../contract/time.ts'
import type { Names } from './names.ts'
import { INNER, LAST_SEQ, MOST_LAPSED, ms, QUEUE } from './sql.ts'

/**
 * The largest number of waiters ahead that is counted. Without it, the cost of a crowd would grow with the square of its
 * size.
 */
const MOST_AHEAD = 200

/** The longest lifetime of a position in milliseconds. */
const LONGEST_LIFETIME = 5_000

/**
 * The time by which an end may seem too late because a process was paused. A later end was written before the clock was set
 * back.
 */
const SLACK = "interval '20 ms'"

/** A condition for the waiters of `_name` that count, including those that have lapsed and are not deleted yet. */
const COUNTED = `${QUEUE} = _name and not gone and not passed`

/**
 * The statements that read what decides a request of `_id` for `_name` at `_now`. Shared leases count until they end. Once
 * `_isReviewed` is true, they count while their rows exist: a lease that has ended is not deleted while a guard or a
 * renewal has locked it.
 */
export function readState({ lease, shared, line }: Names): string {
  const ahead = `${COUNTED} and seq < coalesce(p.seq, ${LAST_SEQ})`
  const counts = 'filter (where _isReviewed or expires_at > _now)'
  return `select l.name is not null as is_known, l.token, l.owner, l.note, l.expires_at,
      coalesce(l.id is not null and l.expires_at > _now, false) as is_held, coalesce(l.id = _id and l.expires_at > _now, false) as holds,
      o.id is not null as shares, p.id is not null as waits, coalesce(p.gone, false) as gone, p.passed, p.lapses_at as own_lapses,
      p.seq as own_seq, p.slot_limit as own_limit, p.units as own_units, h.used, h.highest, h.least_limit, h.ends, q.ahead, q.lapses,
      f.id as first, f.slot_limit as first_limit, f.units as first_units, ${TURN} + f.round_trip as first_grace,
      coalesce(case when l.id is null then l.expires_at > _now + ${SLACK}
        else l.expires_at <= _now or l.expires_at > _now + ${ms('l.ttl')} + ${SLACK} end, false) as is_holder_old,
      h.is_old as are_shared_old, q.is_old as is_queue_old, exists (select from ${line} where name = _name) as is_awaited
    from (select) one
    left join ${lease} l on l.name = _name
    left join ${shared} o on o.name = _name and o.id = _id and o.expires_at > _now and o.ttl > 0
    left join ${line} p on p.name = _name and p.id = _id and p.lapses_at > _now
    left join lateral (
      select coalesce(sum(cardinality(slots)) ${counts}, 0) as used,
        coalesce(max(slots[cardinality(slots)]) ${counts}, -1) as highest,
        coalesce(min(slot_limit) ${counts}, 2147483647) as least_limit, min(expires_at) ${counts} as ends,
        coalesce(bool_or(expires_at <= _now or ttl = 0 or expires_at > _now + ${ms('ttl')} + ${SLACK}), false) as is_old
      from ${shared} where name = _name
    ) h on true
    left join lateral (
      select count(*) filter (where lapses_at > _now) as ahead, min(lapses_at) filter (where lapses_at > _now) as lapses,
        coalesce(bool_or(lapses_at <= _now or lapses_at > _now + ${ms(String(LONGEST_LIFETIME))} + ${SLACK}), false) as is_old
      from (select lapses_at from ${line} where ${ahead} order by seq limit ${MOST_AHEAD}) w
    ) q on true
    left join lateral (
      select id, slot_limit, units, round_trip from ${line} where ${ahead} and lapses_at > _now order by seq limit 1
    ) f on true
    into _s;
    if _s.is_queue_old and _s.first is not null then
      -- The part that was read may be full of waiters that have lapsed. Two that live are counted all the same: no claim
      -- passes more than one.
      select greatest(_s.ahead, count(*)) from (
        select from ${line} where ${COUNTED} and seq < coalesce(_s.own_seq, ${LAST_SEQ}) and lapses_at > _now order by seq limit 2
      ) w into _s.ahead;
    end if`
}

/** Must the name be reviewed before a claim can be decided? */
export const IS_OLD: string = '(_s.is_holder_old or _s.are_shared_old or _s.is_queue_old)'

/** Is there room for a claim in addition to the holders? */
export function fits(limit: string, units: string): string {
  return `(not _s.is_held and _s.highest < ${limit} and least(${limit}, _s.least_limit) - _s.used >= ${units})`
}

/**
 * The end of the first waiter's grace period. If no claim holds the name alone, `expires_at` is the time when the name was
 * last changed.
 */
const GRACE_ENDS = `(coalesce(_s.expires_at, '-infinity') + ${ms('_s.first_grace')})`

/** May the claim pass the only waiter ahead of it? */
export const IS_PASSABLE: string = `(_s.ahead = 1 and ${fits('_s.first_limit', '_s.first_units')}
  and ${GRACE_ENDS} <= _now)`

/** Milliseconds until the answer may be different if nothing is released. Null: only others can change it. */
export const NEXT_CHANGE: string = `extract(epoch from least(case when _s.is_held then _s.expires_at end, _s.ends, _s.lapses,
  case when _s.ahead = 1 and ${fits('_s.first_limit', '_s.first_units')} and ${GRACE_ENDS} > _now then ${GRACE_ENDS} end) - _now) * 1000`

/**
 * Ends the leases and positions that have lapsed, for a name whose row the caller has locked `for update`. Corrects times
 * that were written before the clock was set back. Output: 2 if slots were freed or another waiter is now the first, 1 if
 * another one is the second, otherwise 0.
 */
export function review({ lease, shared, line, call }: Names): string {
  const ofName = 'name = _name'
  return `create or replace function ${call('review')}(_name text, _holder boolean, _shared boolean, _queue boolean) returns integer ${INNER}
declare
  -- By a time from before the lock, a lease that was granted since would look as if it lasted too long.
  _now timestamptz := clock_timestamp();
  _changes integer := 0;
  _at timestamptz;
  _hasExpired boolean;
begin
  if _holder then
    update ${lease} set id = null, ttl = 0, expires_at = _now where ${ofName} and id is not null and expires_at <= _now;
    _changes := case when found then 2 else 0 end;
    update ${lease} set expires_at = _now + ${ms('ttl')} where ${ofName} and expires_at > _now + ${ms('ttl')};
  end if;
  if _shared then
    with gone as (
      select id from ${shared} where ${ofName} and (expires_at <= _now or ttl = 0) for update skip locked
    ), ended as (
      delete from ${shared} s using gone g where s.name = _name and s.id = g.id returning s.ttl, s.expires_at
    )
    select max(expires_at), bool_or(ttl > 0) from ended into _at, _hasExpired;
    if _at is not null and exists (select from ${line} where name = _name) then
      -- A release has the time of its own. An end counts from when it was seen.
      update ${lease} set expires_at = case when _hasExpired then _now else least(greatest(expires_at, _at), _now) end where ${ofName} and id is null;
      _changes := case when _hasExpired then 2 else _changes end;
    end if;
    -- The lock of the name does not stop renewals of these: so the time is read after their rows.
    update ${shared} s set expires_at = clock_timestamp() + ${ms('s.ttl')} from (
      select id from ${shared} where ${ofName} and expires_at > clock_timestamp() + ${ms('ttl')} for no key update skip locked
    ) k where s.name = _name and s.id = k.id;
  end if;
  if _queue then
    -- A lapsed row that is locked stays, and is seen again by each request, so it does not count.
    with ended as (
      delete from ${line} w using (
        select id from ${line} where ${QUEUE} = _name and lapses_at <= _now order by seq limit ${MOST_LAPSED} for update skip locked
      ) k where w.name = _name and w.id = k.id returning w.id
    )
    select greatest(_changes, max(case when lapses_at > _now then 0 else 3 - place end)) from (
      select lapses_at, row_number() over (order by seq) as place from ${line}
      where ${COUNTED} and (lapses_at > _now or id in (select id from ended)) order by seq limit 2
    ) heads into _changes;
    update ${line} w set lapses_at = _now + ${ms(String(LONGEST_LIFETIME))} from (
      select id from ${line} where ${COUNTED} and lapses_at > _now + ${ms(String(LONGEST_LIFETIME))} for no key update skip locked
    ) k where w.name = _name and w.id = k.id;
  end if;
  if _changes = 2 then
    update ${lease} set expires_at = _now where ${ofName} and id is null;
  end if;
  return _changes;
end $holdfast$;`
}

/**
 * Wakes the first waiter if it fits, and tells the second to ask after the grace period of the first. `_isChanged`: the
 * name changed just now; otherwise only the second is notified. `_except` is the waiter that asks.
 */
export function wake({ lease, shared, line, call }: Names): string {
  return `create or replace function ${call('wake')}(_name text, _now timestamptz, _isChanged boolean, _except text) returns void ${INNER}
declare
  _s record;
  _waiter record;
  _first record;
begin
  for _waiter in
    select id, channel, slot_limit, units, ${TURN} + round_trip as grace from ${line}
    where ${COUNTED} and lapses_at > _now order by seq limit 2
  loop
    if _first is null then
      select l.id is not null and l.expires_at > _now as is_held, l.expires_at, h.* from ${lease} l, lateral (
        select coalesce(sum(cardinality(slots)), 0) as used, coalesce(max(slots[cardinality(slots)]), -1) as highest,
          coalesce(min(slot_limit), 2147483647) as least_limit
        from ${shared} where name = _name and expires_at > _now and ttl > 0
      ) h where l.name = _name into _s;
      exit when ${fits('_waiter.slot_limit', '_waiter.units')} is not true;
      if _isChanged and _waiter.channel is not null and _waiter.id is distinct from _except then
        perform pg_notify(_waiter.channel, _waiter.id);
      end if;
      _first := _waiter;
    elsif _waiter.channel is not null and _waiter.id is distinct from _except then
      perform pg_notify(_waiter.channel, _waiter.id || ' '
        || ceil(greatest(extract(epoch from case when _isChanged then _now else _s.expires_at end - _now) * 1000 + _first.grace, 0)));
    end if;
  end loop;
end $holdfast$;`
}
