import { LONGEST_REQUEST } from '../../contract/time.ts'
import type { Names } from './names.ts'
import { BEGIN, FORGETFUL, ms, NOW, QUEUE, SETTINGS } from './sql.ts'

/**
 * The function for a batch of releases. Input: `[{i, name, id}]`. A release changes only the rows of its claim, because the
 * rows of the name are locked by grants.
 */
export function release({ lease, shared, line, call }: Names): string {
  const orders = 'json_to_recordset(_orders) as a(i integer, name text collate "C", id text)'
  const own = (table: string): string => `
    select a.i, l.name, l.id from asked a join ${table} l on l.name = a.name and l.id = a.id where l.expires_at > _now and l.ttl > 0
    order by l.name for no key update of l skip locked`
  return `
create or replace function ${call('release')}(orders text) returns text ${SETTINGS}
declare
  _orders constant json := orders;
  ${NOW}
  _count constant integer := json_array_length(_orders);
  _done integer[];
  _marked integer[];
  _freed text[];
  _left text[];
  _places bigint[];
  _place bigint;
  _before bigint;
  _order record;
${BEGIN}
  ${FORGETFUL}
  with asked as materialized (
    select a.* from ${orders}
  ), own as (${own(lease)}
  ), own_shared as (${own(shared)}
  ), freed as (
    update ${lease} l set id = null, ttl = 0, expires_at = _now from own o where l.name = o.name returning o.i, l.name
  ), freed_shared as (
    update ${shared} l set ttl = 0, expires_at = _now from own_shared o where l.name = o.name and l.id = o.id returning o.i, l.name
  ), own_line as materialized (
    select a.i, w.name, w.id from asked a join ${line} w on w.name = a.name and w.id = a.id where not w.gone
    order by w.name, w.seq for update of w
  ), left_line as (
    delete from ${line} w using own_line o where w.name = o.name and w.id = o.id
    returning o.i, w.name, w.lapses_at, case when not w.passed then w.seq end as seq
  )
  select array(select name from freed union select name from freed_shared),
    (select array_agg(name) from left_line), (select array_agg(seq) from left_line),
    array(select i from freed union select i from freed_shared union select i from left_line where lapses_at > _now)
  into _freed, _left, _places, _done;

  if cardinality(_done) < _count then
    -- Neither holder nor waiter: its request may still arrive. Both requests lock the row of the name.
    for _order in select * from ${orders} where i <> all (_done) order by name loop
      if not exists (select from ${lease} where name = _order.name) then
        insert into ${lease} (name, token, ttl, expires_at) values (_order.name, 0, 0, to_timestamp(0)) on conflict (name) do nothing;
      end if;
      perform from ${lease} where name = _order.name for no key update skip locked;
      if found and not exists (select from ${lease} where name = _order.name and id = _order.id and expires_at > _now)
        and not exists (select from ${shared} where name = _order.name and id = _order.id and expires_at > _now and ttl > 0) then
        -- A lease that has ended by its time ends for good: a clock that is set back would revive it, and so would a renewal
        -- that has locked its row and is not committed yet.
        perform from ${shared} where name = _order.name and id = _order.id and ttl > 0 for no key update skip locked;
        if found then
          update ${shared} set ttl = 0, expires_at = _now where name = _order.name and id = _order.id;
          _freed := _freed || _order.name;
        end if;
        continue when exists (select from ${shared} where name = _order.name and id = _order.id and ttl > 0);
        update ${lease} set id = null, ttl = 0, expires_at = _now where name = _order.name and id = _order.id;
        if found then
          _freed := _freed || _order.name;
        end if;
        insert into ${line} (name, id, owner, note, lapses_at, gone)
        values (_order.name, _order.id, '', '', _now + ${ms(String(LONGEST_REQUEST))}, true) on conflict (name, id) do nothing;
        if not found then
          -- It has joined the queue meanwhile, or was withdrawn before.
          delete from ${line} where name = _order.name and id = _order.id and not gone
          returning case when not passed then seq end into _place;
          if found then
            _left := _left || _order.name;
            _places := _places || _place;
            _done := _done || _order.i;
            continue;
          end if;
          update ${line} set lapses_at = _now + ${ms(String(LONGEST_REQUEST))} where name = _order.name and id = _order.id;
        end if;
        _marked := _marked || _order.i;
      end if;
    end loop;
  end if;

  for _order in
    select name, min(seq) as seq from (
      select name, -1 as seq from unnest(_freed) name union all select * from unnest(_left, _places)
    ) changed where seq is not null group by name
      having exists (select from ${line} w where ${QUEUE} = changed.name and not w.gone and w.lapses_at > _now)
  loop
    select count(*) into _before from (
      select from ${line} where ${QUEUE} = _order.name and not gone and not passed and lapses_at > _now and seq < _order.seq limit 2
    ) w;
    -- What has ended counts from now. Who has locked the row sees it.
    if exists (select from ${lease} where name = _order.name and id is not null and expires_at <= _now)
      or exists (select from ${shared} where name = _order.name and expires_at <= _now and ttl > 0) then
      perform from ${lease} where name = _order.name for update skip locked;
      if found and ${call('review')}(_order.name, true, true, false) = 2 then
        _before := 0;
      end if;
    elsif _before = 0 and _order.seq >= 0 then
      -- There is another first waiter.
      update ${lease} l set expires_at = _now
      from (select name from ${lease} where name = _order.name and id is null for no key update skip locked) k where l.name = k.name;
    end if;
    if _before < 2 then
      perform ${call('wake')}(_order.name, _now, _before = 0, null);
    end if;
  end loop;
  return json_build_array(_time, (
    select json_agg(json_build_array(case
      when i = any (_done) then 'released'
      when i = any (_marked) then 'unknown'
      else 'skipped'
    end) order by i) from ${orders}
  ))::text;
end $holdfast$;`
}
