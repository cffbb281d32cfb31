import type { Names } from './names.ts'
import { INNER, LAST_TOKEN, LONGEST_LOCK, MOST_LAPSED, ms, QUEUE, since } from './sql.ts'
import { fits, IS_OLD, IS_PASSABLE, NEXT_CHANGE, readState } from './state.ts'

/**
 * Milliseconds that a claim with a limit above 1 waits until another such claim is granted. A grant takes as long as a
 * commit.
 */
const LONGEST_WAIT = 20

/** Milliseconds after which a claim asks again if a row was locked. */
const LOCKED = 10

/**
 * Decides one `acquire` by the rules of `stores/rules/name.ts`, and answers as JSON. A decision that writes nothing about
 * the name needs no lock: a claim that is refused writes only its position. Another request may be carried out between the
 * refusal and that write. The claim then joins behind a grant that it did not see, and the answer shows a holder that has
 * ended. Any other decision is made again under the lock of the name's row, by statements that began after the row was
 * locked. So two requests never grant the same slot, and a grant sees every earlier grant and every waiter that was
 * answered.
 */
export function decide(names: Names): string {
  const { lease, shared, line, call } = names
  // A lease that was released since _now has ended. Only its ttl of 0 shows that with any clock.
  const prolonged = (table: string): string => `update ${table} l
        set expires_at = greatest(least(l.expires_at, clock_timestamp() + ${ms('l.ttl')}), _now + ${ms('_ttl')}),
          ttl = greatest(_ttl, least(l.ttl, ceil(${since('l.expires_at')})))
        from (select name, id from ${table} where name = _name and id = _id and expires_at > greatest(_now, clock_timestamp()) and ttl > 0 for no key update skip locked) k
        where l.name = k.name and l.id = k.id`
  const lifetime = ms('least(greatest(_ttl, 1000), 5000)')
  return `create or replace function ${call('decide')}(_name text, _id text, _owner text, _note text, _ttl integer, _queue boolean, _limit integer, _units integer, _round_trip integer, _until double precision, _channel text) returns json ${INNER}
declare
  _now timestamptz;
  _s record;
  _isFree boolean;
  _isLocked boolean := false;
  _isReviewed boolean := false;
  _isBlocked boolean := false;
  _waits boolean;
  _changes integer := 0;
  _token bigint;
  _slots integer[];
  _wait double precision;
begin
  loop
    _now := clock_timestamp();
    ${readState(names)};
    if _until < extract(epoch from _now) * 1000 then
      return '["late"]';
    elsif _s.gone then
      return '["gone"]';
    elsif _s.holds then
      ${prolonged(lease)} returning token into _token;
      return case when _token is null then '["skipped"]' else json_build_array('held', _token::text) end;
    elsif _s.shares then
      -- A copy of the request must not shorten what a renewal has extended since.
      ${prolonged(shared)} returning token, slots into _token, _slots;
      return case when _token is null then '["skipped"]' else json_build_array('held', _token::text, _slots) end;
    end if;
    _limit := coalesce(_s.own_limit, _limit);
    _units := coalesce(_s.own_units, _units);
    _isFree := ${fits('_limit', '_units')} and (_s.ahead = 0 or ${IS_PASSABLE});
    exit when not _isFree and (_isReviewed or not ${IS_OLD});
    if not _isLocked then
      if not _s.is_known then
        insert into ${lease} (name, token, ttl, expires_at) values (_name, 0, 0, to_timestamp(0)) on conflict (name) do nothing;
      end if;
      perform from ${lease} where name = _name for update skip locked;
      _isBlocked := not found;
      if _isBlocked and _limit > 1 and current_setting('holdfast.waited', true) is distinct from 'yes' then
        begin
          perform set_config('lock_timeout', '${LONGEST_WAIT}', true);
          perform from ${lease} where name = _name for update;
          _isBlocked := not found; -- an idle row may have been deleted
          perform set_config('lock_timeout', '${LONGEST_LOCK}', true);
        exception when lock_not_available then
          perform set_config('holdfast.waited', 'yes', true); -- all claims of a batch wait once, or they would be late
        end;
      end if;
      exit when _isBlocked;
      _isLocked := true;
      continue when not ${IS_OLD};
    end if;
    if not _isReviewed and ${IS_OLD} then
      _changes := ${call('review')}(_name, _s.is_holder_old, _s.are_shared_old, _s.is_queue_old);
      _isReviewed := true;
    elsif _s.token >= ${LAST_TOKEN} then
      return '["exhausted"]';
    else
      if _s.waits then
        -- A release locks only positions, in this order. So a claim without one is decided again, as if it came after that.
        perform from ${line} where name = _name and (id = _id or (_s.ahead > 0 and id = _s.first)) order by seq for update;
        perform from ${line} where name = _name and id = _id;
        if not found then
          -- The release cannot lock the row of the name to begin the grace period of who is the first now.
          update ${lease} set expires_at = clock_timestamp()
          where name = _name and id is null and _s.ahead = 0 and not _s.passed;
          continue;
        end if;
      end if;
      _token := greatest(_s.token + 1, floor(extract(epoch from _now) * 1000000)::bigint);
      if _limit = 1 then
        update ${lease} set id = _id, owner = _owner, note = _note, token = _token, ttl = _ttl, expires_at = _now + ${ms('_ttl')},
          shared = false where name = _name;
      else
        -- Without a gap nothing is read.
        _slots := array[_s.used];
        if _units > 1 or _s.highest >= _s.used then
          _slots := array(
            select generate_series(0, (_s.used + _units - 1)::integer) except select unnest(slots) from ${shared} where name = _name
            order by 1 limit _units);
        end if;
        insert into ${shared} (name, id, owner, note, slot_limit, slots, token, ttl, expires_at)
        values (_name, _id, _owner, _note, _limit, _slots, _token, _ttl, _now + ${ms('_ttl')}) on conflict (name, id) do nothing;
        -- A guard still has the row of this claim, from before it was released.
        _isBlocked := not found;
        exit when _isBlocked;
        update ${lease} set token = _token, shared = true, expires_at = case when _s.waits then _now else expires_at end
        where name = _name;
      end if;
      if _s.ahead > 0 then
        update ${line} set passed = true where name = _name and id = _s.first;
      end if;
      if _s.waits then
        delete from ${line} where name = _name and id = _id;
        _changes := 2;
      end if;
      -- Whatever lapsed is read by each request for the name. Crowds that time out, or die, leave thousands.
      if _s.is_awaited then
        delete from ${line} w using (
          select id from ${line} where ${QUEUE} = _name and lapses_at <= _now limit ${MOST_LAPSED} for update skip locked
        ) k where w.name = _name and w.id = k.id;
      end if;
      if _limit > 1 and _changes > 0 then
        perform ${call('wake')}(_name, _now, _changes = 2, _id);
      end if;
      return json_build_array('held', _token::text, _slots);
    end if;
  end loop;

  -- Since when the name is free is not known to a claim that cannot lock it.
  _wait := case when _isBlocked and _s.ahead = 1 then ${LOCKED} else ${NEXT_CHANGE} end;
  _isBlocked := _isBlocked and _s.ahead = 0; -- it is not its own turn otherwise
  _waits := _s.waits;
  if _queue and (_s.waits or not _isBlocked) and not coalesce(_s.waits and not _s.passed
    and _s.own_lapses between _now + 0.75 * ${lifetime} and _now + ${lifetime}, false) then
    insert into ${line} as w (name, id, owner, note, slot_limit, units, channel, lapses_at, gone, round_trip)
    values (_name, _id, _owner, _note, _limit, _units, _channel, _now + ${lifetime}, false, _round_trip)
    on conflict (name, id) do update set owner = excluded.owner, note = excluded.note, slot_limit = excluded.slot_limit,
      units = excluded.units, channel = excluded.channel, lapses_at = excluded.lapses_at, round_trip = excluded.round_trip,
      gone = false, passed = false, seq = case when w.lapses_at > _now then w.seq else excluded.seq end
    where not w.gone or w.lapses_at <= _now;
    _waits := found;
  end if;
  if _changes > 0 then
    perform ${call('wake')}(_name, _now, _changes = 2, _id);
  end if;
  return json_build_array('busy', case when _wait > 0 then greatest(_wait, 1) else ${LOCKED} end, _s.ahead, _waits,
    case when _s.is_held then json_build_array(_s.token::text, _s.owner, _s.note, ${since('_s.expires_at')})
    when _s.used > 0 then (
      select json_build_array(token::text, owner, note, ${since('expires_at')}, slot_limit, slots) from ${shared}
      where name = _name order by expires_at <= _now, slots limit 1
    ) end, _s.waits and not _s.passed, _isBlocked);
end $holdfast$;`
}
