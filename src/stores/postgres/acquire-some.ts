import type { Names } from './names.ts'
import { BEGIN, FORGETFUL, LAST_SEQ, ms, NOW, QUEUE, roundTrips, SETTINGS, since, turnAfter } from './sql.ts'

/**
 * In: `[{i, name, id, owner, note, ttl, queue, round_trip, until}]`, the same for the gate, how many are wanted, and a channel; out:
 * `[time, answer]`. The answer is `late`, `gated`, `few` with how many are free and a holder, or `held` with `[i, token] …`.
 * If the gate queues, `gated` and `few` also have the answer of `acquire` about the gate, or about each name.
 */
export function acquireSome({ lease, line, call }: Names): string {
  const waits = (name: string): string => `${QUEUE} = ${name} and not w.gone and w.lapses_at > _now`
  const columns =
    'a(i integer, name text, id text, owner text, note text, ttl integer, queue boolean, round_trip integer, until double precision)'
  const before = `${waits('a.name')} and w.seq < coalesce(p.seq, ${LAST_SEQ})`
  const ordersOf = (condition: string, queues: boolean): string => `
    select json_agg(json_build_object('i', i, 'name', name, 'id', id, 'owner', owner, 'note', note, 'ttl', ttl,
      'queue', ${queues}, 'round_trip', round_trip, 'until', until) order by i)::text
    from json_to_recordset(_orders) as ${columns} where ${condition}`
  const enter = `_answer := ${call('acquire')}(json_build_array(_asked)::text, _channel)::json -> 1 -> 0;`
  const holder = `
    select json_build_array(a.i, ${since('l.expires_at')}, l.token::text, l.owner, l.note)
    from json_to_recordset(_orders) as a(i integer, name text) join ${lease} l on l.name = a.name
    where l.id is not null and l.expires_at > _now order by a.i limit 1`
  const leaveAllBut = (name: string): string => `
    select json_agg(json_build_object('i', place - 1, 'name', name, 'id', id)) into _rest from (
      select a.name, a.id, row_number() over () as place from (
        select name, id from json_to_recordset(_orders) as ${columns}
        union all select _gate, _asked ->> 'id'
      ) a
      where a.name <> ${name} and (exists (select from ${line} w where w.name = a.name and w.id = a.id
          and not w.gone and w.lapses_at > _now)
        or exists (select from ${lease} l where l.name = a.name and l.id = a.id and l.expires_at > _now))
    ) others;
    if _rest is not null then
      perform ${call('release')}(_rest::text);
    end if;`
  return `
create or replace function ${call('acquire_some')}(orders text, gate text, _want integer, _channel text) returns text ${SETTINGS}
declare
  _orders constant json := orders;
  _asked constant json := gate;
  _gate constant text := _asked ->> 'name';
  _queues constant boolean := _asked ->> 'queue';
  _commit constant text := current_setting('synchronous_commit');
  ${NOW}
  _held boolean;
  _open boolean;
  _answer json;
  _rest json;
  _free text[];
  _new text[];
  _names text[];
  _answers json;
${BEGIN}
  if exists (select from json_to_recordset(_orders) as a(until double precision) where a.until < _time) then
    return json_build_array(_time, json_build_array('late'))::text;
  end if;
  -- A repeated request gets what its claim holds, also if it is stale: it must not take another name, or end what is held.
  _names := array(select l.name from json_to_recordset(_orders) as a(i integer, name text, id text)
    join ${lease} l on l.name = a.name and l.id = a.id and l.expires_at > _now order by a.i limit _want);
  _held := cardinality(_names) = _want;
  _open := _held or not exists (select from ${lease} where name = _gate and id is not null and expires_at > _now)
    and not exists (select from ${line} w where ${waits('_gate')});
  if not _open then
    if not _queues then
      return json_build_array(_time, json_build_array('gated'))::text;
    end if;
    ${enter}
    if _answer ->> 0 <> 'held' then
      -- It may have lost the gate. Then it leaves the queues of the names.
      ${leaveAllBut('_gate')}
      return json_build_array(_time, json_build_array('gated', _answer))::text;
    end if;
  end if;
  if not _held then
    select array_agg(name order by i), array_agg(name order by i) filter (where token is null) into _free, _new from (
      select a.i, a.name, l.token
      from json_to_recordset(_orders) as a(i integer, name text, id text)
      left join ${lease} l on l.name = a.name
      left join ${line} p on p.name = a.name and p.id = a.id and p.lapses_at > _now
      where not coalesce(p.gone, false)
        and case
          when l.id is not null and l.expires_at > _now then l.id = a.id
          else l.expires_at is null or _now >= least(l.expires_at, _now)
            + (select ${turnAfter('count(*)')} from ${line} w where ${before})
            + ${ms(roundTrips(line, before))}
        end
    ) found;
    if coalesce(cardinality(_free), 0) < _want and not _queues then
      return (select json_build_array(_time, json_build_array('few', coalesce(cardinality(_free), 0), (${holder}))))::text;
    end if;
    -- Others acquire at the same moment: each takes rows that nobody else has locked.
    select array_agg(name) into _names from (
      select l.name from ${lease} l where l.name = any (_free)
      order by array_position(_free, l.name) for update skip locked limit _want
    ) locked;
    _names := (array(select name from unnest(_free) with ordinality as f(name, place)
      where name = any (_names) or name = any (_new) order by place))[1:_want];
  end if;
  if cardinality(_names) = _want then
    select json_agg(json_build_array(c.i, answer -> 1) order by c.i) into _answers from (
      select a.i, row_number() over (order by a.i) - 1 as place
      from json_to_recordset(_orders) as a(i integer, name text) where a.name = any (_names)
    ) c
    join json_array_elements(${call('acquire')}((${ordersOf('a.name = any (_names)', false)}), null)::json -> 1) with ordinality as g(answer, number) on g.number = c.place + 1
    where answer ->> 0 = 'held';
  end if;
  if _queues and not _held and _answers is null then
    if _open then
      ${enter}
      if _answer ->> 0 <> 'held' then
        return json_build_array(_time, json_build_array('gated', _answer))::text;
      end if;
      _open := false;
    end if;
    _rest := ${call('acquire')}((${ordersOf('true', true)}), _channel)::json -> 1;
    -- One may have been freed just now.
    select json_build_array(json_build_array(place - 1, answer -> 1)) into _answers
    from json_array_elements(_rest) with ordinality as g(answer, place) where answer ->> 0 = 'held' order by place limit 1;
    if _answers is null then
      return (select json_build_array(_time, json_build_array('few', 0, (${holder}), _rest)))::text;
    end if;
    _names := array(select name from json_to_recordset(_orders) as a(i integer, name text) where i = (_answers -> 0 ->> 0)::integer);
  end if;
  if coalesce(json_array_length(_answers), 0) = _want then
    if _queues then
      ${leaveAllBut('_names[1]')}
      -- To leave switched synchronous_commit off. A crash must not lose the grant.
      perform set_config('synchronous_commit', case _commit when 'off' then 'on' else _commit end, true);
    end if;
    return json_build_array(_time, json_build_array('held', _answers))::text;
  end if;
  ${FORGETFUL}
  -- Others were quicker. All or none: if some were granted, this call fails as a whole.
  if _answers is not null then
    raise exception 'others acquired the same names' using errcode = 'serialization_failure';
  end if;
  return json_build_array(_time, json_build_array('gated'))::text;
end $holdfast$;`
}
