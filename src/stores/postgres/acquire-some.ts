import { TURN } from '../../contract/time.ts'
import type { Names } from './names.ts'
import { BEGIN, FORGETFUL, ms, NOW, SETTINGS, since } from './sql.ts'

/**
 * In: `[{i, name, id, owner, note, ttl, queue, until}]`, the gate, and how many are wanted; out: `[time, answer]`. The
 * answer is `late`, `gated`, `few` with how many are free and a holder, or `held` with `[i, token] …`.
 */
export function acquireSome({ lease, line, call }: Names): string {
  const waits = (name: string): string => `w.name = ${name} and not w.gone and w.lapses_at > _now`
  return `
create or replace function ${call('acquire_some')}(orders text, _gate text, _want integer) returns text ${SETTINGS}
declare
  _orders constant json := orders;
  ${NOW}
  _free text[];
  _new text[];
  _names text[];
  _answers json;
${BEGIN}
  if exists (select from json_to_recordset(_orders) as a(until double precision) where a.until < _time) then
    return json_build_array(_time, json_build_array('late'))::text;
  end if;
  if exists (select from ${lease} where name = _gate and id is not null and expires_at > _now)
      or exists (select from ${line} w where ${waits('_gate')}) then
    return json_build_array(_time, json_build_array('gated'))::text;
  end if;
  select array_agg(name order by i), array_agg(name order by i) filter (where token is null) into _free, _new from (
    select a.i, a.name, l.token
    from json_to_recordset(_orders) as a(i integer, name text, id text)
    left join ${lease} l on l.name = a.name
    where not exists (select from ${line} w where w.name = a.name and w.id = a.id and w.gone and w.lapses_at > _now)
      and case
        when l.id is not null and l.expires_at > _now then l.id = a.id
        else l.expires_at is null or _now >= least(l.expires_at, _now)
          + (select count(*) from ${line} w where ${waits('a.name')}) * ${ms(String(TURN))}
      end
  ) found;
  if coalesce(cardinality(_free), 0) < _want then
    return (
      select json_build_array(_time, json_build_array('few', coalesce(cardinality(_free), 0), (
        select json_build_array(a.i, ${since('l.expires_at')}, l.token::text, l.owner, l.note)
        from json_to_recordset(_orders) as a(i integer, name text) join ${lease} l on l.name = a.name
        where l.id is not null and l.expires_at > _now order by a.i limit 1
      )))
    )::text;
  end if;
  -- Others acquire at the same moment: each takes rows that nobody else has locked.
  select array_agg(name) into _names from (
    select l.name from ${lease} l where l.name = any (_free)
    order by array_position(_free, l.name) for update skip locked limit _want
  ) locked;
  _names := (array(select name from unnest(_free) with ordinality as f(name, place)
    where name = any (_names) or name = any (_new) order by place))[1:_want];
  if cardinality(_names) = _want then
    select json_agg(json_build_array(c.i, answer -> 1) order by c.i) into _answers from (
      select a.i, row_number() over (order by a.i) - 1 as place
      from json_to_recordset(_orders) as a(i integer, name text) where a.name = any (_names)
    ) c
    join json_array_elements(${call('acquire')}((
      select json_agg(json_build_object('i', i, 'name', name, 'id', id, 'owner', owner, 'note', note, 'ttl', ttl,
        'queue', false, 'until', until) order by i)::text
      from json_to_recordset(_orders)
        as a(i integer, name text, id text, owner text, note text, ttl integer, until double precision)
      where a.name = any (_names)
    ), null)::json -> 1) with ordinality as g(answer, number) on g.number = c.place + 1
    where answer ->> 0 = 'held';
  end if;
  if coalesce(json_array_length(_answers), 0) = _want then
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
