import { invalid, show } from '../../contract/check.ts'
import { LARGEST_LIMIT } from '../../contract/store.ts'
import type { Names } from '../../stores/postgres/names.ts'
import { schemaIfMissing } from '../../stores/postgres/schema.ts'
import { literal } from '../../stores/postgres/sql.ts'
import type { Presented } from '../fence.ts'
import { isAlone, STRIPES } from '../rule.ts'
import { type FenceNames, MARKS_FORMAT } from './names.ts'

/** SQLSTATE for a refused token. Its detail is JSON, which `failure.ts` reads. */
export const STALE = 'HF412'
/** SQLSTATE for a lease that is over according to its row. */
export const OVER = 'HF410'

/**
 * An older holder that is paused in its transaction keeps the row of the mark locked. The lock timeout is below the limit
 * of a request (5 s), so that waiters get the reason.
 */
const FUNCTION = `language plpgsql volatile
set search_path = pg_catalog
set lock_timeout = 4000
as $holdfast$
#variable_conflict use_column`

/**
 * Creates the table of marks and the functions. It may run again.
 *
 * Each transaction first locks the mark of the name: holders of a limit above 1 lock it `for share`, one of limit 1 writes
 * it. `shared` says whether permits have come since the last holder of limit 1: if not, transactions that present the
 * current token again lock it `for share` too and write nothing, so transactions of one holder run concurrently. A newer
 * holder waits until they have ended. The marks of slots are locked in the same way.
 *
 * Before each row lock they take an advisory lock, which is fair. Row locks are not: shared locks overtake a waiting writer,
 * so an older holder with overlapping transactions, or many readers, would keep a newer one out for ever.
 *
 * A holder that makes the mark of a slot also writes that of the name. And a holder of limit 1 writes it before it locks
 * the marks of slots, in a statement of its own. Otherwise it could miss a mark that was made meanwhile: at `read committed` in the
 * snapshot of its statement, and above that in the one of its transaction.
 */
export function marksSql(names: FenceNames): string {
  const { schema, marks, raise, mark, refuse } = names
  const lock = (way: 'lock' | 'lock_shared', key: string): string =>
    `perform pg_advisory_xact_${way}(hashtext('${marks}'), hashtext(${key}))`
  return `${schemaIfMissing(schema)}

create table if not exists ${marks} (
  resource text collate "C" not null,
  slot text collate "C" not null default '',
  epoch integer not null default 0 check (epoch >= 0),
  token bigint not null check (token >= 0),
  shared boolean not null default false,
  raised_at timestamptz not null default clock_timestamp(),
  primary key (resource, slot)
) with (fillfactor = 50);
comment on table ${marks} is 'Holdfast marks, format ${MARKS_FORMAT}: the highest tokens that each resource was shown';

create or replace function ${refuse}(_resource text, _epoch integer, _token bigint, _seen_epoch integer, _seen bigint)
returns void ${FUNCTION}
begin
  raise exception 'token %:% is refused: % has seen %:%', _epoch, _token, to_json(_resource), _seen_epoch, _seen
    using errcode = '${STALE}', hint = 'a newer holder has written: stop', detail = json_build_object(
      'resource', _resource, 'epoch', _epoch, 'token', _token::text,
      'highest', json_build_object('epoch', _seen_epoch, 'token', _seen::text))::text;
end $holdfast$;

-- Raises one mark. True: it was raised, or made. False: it was so high already, and is locked.
create or replace function ${mark}(_resource text, _slot text, _epoch integer, _token bigint) returns boolean
${FUNCTION}
declare
  _seen record;
  _key text := case _slot when '' then _resource else _resource || chr(10) || _slot end;
begin
  select epoch, token, shared into _seen from ${marks} where resource = _resource and slot = _slot;
  if (_seen.epoch, _seen.token) = (_epoch, _token) and not _seen.shared then
    ${lock('lock_shared', '_key')};
    perform 1 from ${marks} where resource = _resource and slot = _slot
      and epoch = _epoch and token = _token and not shared for share;
    if found then
      return false;
    end if;
  else
    ${lock('lock', '_key')};
  end if;
  insert into ${marks} as mark (resource, slot, epoch, token) values (_resource, _slot, _epoch, _token)
    on conflict (resource, slot) do update
    set epoch = excluded.epoch, token = excluded.token, shared = false, raised_at = case
      when (mark.epoch, mark.token) = (excluded.epoch, excluded.token) then mark.raised_at else clock_timestamp() end
    where (mark.epoch, mark.token) <= (excluded.epoch, excluded.token);
  if not found then
    select epoch, token into _seen from ${marks} where resource = _resource and slot = _slot;
    perform ${refuse}(_resource, _epoch, _token, _seen.epoch, _seen.token);
  end if;
  return true;
end $holdfast$;

-- Call it first in the transaction that writes. It raises the SQLSTATE ${STALE} if a higher token was shown. A permit is
-- called with its limit and slots, a reader with the limit ${LARGEST_LIMIT}.
create or replace function ${raise}(
  _resource text, _epoch integer, _token bigint, _limit integer default 1, _slots integer[] default '{0}'
) returns void
${FUNCTION}
declare
  _seen record;
  _slot text;
  _keys text[];
begin
  select array_agg(key order by slot) into _keys from (
    select case _limit when ${LARGEST_LIMIT} then 'r' || slot % ${STRIPES} else slot::text end as key, min(slot) as slot
    from unnest(_slots) as slot group by key) as shown;
  -- A late holder needs no lock. With one, it would wait for the transaction of the newest holder.
  perform ${refuse}(_resource, _epoch, _token, epoch, token) from (
    select epoch, token from ${marks} where resource = _resource and (epoch, token) > (_epoch, _token)
      and (_limit = 1 or slot = '' or slot = any(_keys) and _limit < ${LARGEST_LIMIT})
    order by epoch desc, token desc limit 1) as seen;

  if _limit = 1 then
    if ${mark}(_resource, '', _epoch, _token) then
      for _seen in select epoch, token from ${marks} where resource = _resource and slot <> '' for share loop
        if (_seen.epoch, _seen.token) > (_epoch, _token) then
          perform ${refuse}(_resource, _epoch, _token, _seen.epoch, _seen.token);
        end if;
      end loop;
    end if;
    return;
  end if;

  perform 1 from ${marks} where resource = _resource and slot = '' and shared
    and (select count(*) from ${marks} where resource = _resource and slot = any(_keys)) = cardinality(_keys);
  if found then
    ${lock('lock_shared', '_resource')};
  else -- it is going to write the mark of the name
    ${lock('lock', '_resource')};
  end if;
  perform 1 from ${marks} where resource = _resource and slot = '' and shared and (epoch, token) <= (_epoch, _token)
    and (select count(*) from ${marks} where resource = _resource and slot = any(_keys)) = cardinality(_keys) for share;
  if not found then
    insert into ${marks} as mark (resource, epoch, token, shared) values (_resource, _epoch, 0, true)
      on conflict (resource, slot) do update set shared = true where (mark.epoch, mark.token) <= (_epoch, _token);
    if not found then
      select epoch, token into _seen from ${marks} where resource = _resource and slot = '';
      perform ${refuse}(_resource, _epoch, _token, _seen.epoch, _seen.token);
    end if;
  end if;
  foreach _slot in array _keys loop
    if _limit < ${LARGEST_LIMIT} then
      perform ${mark}(_resource, _slot, _epoch, _token);
    else -- a higher mark of another reader stays, without a lock
      perform 1 from ${marks} where resource = _resource and slot = _slot and (epoch, token) >= (_epoch, _token);
      if not found then
        insert into ${marks} as mark (resource, slot, epoch, token) values (_resource, _slot, _epoch, _token)
          on conflict (resource, slot) do update
          set epoch = excluded.epoch, token = excluded.token, raised_at = clock_timestamp()
          where (mark.epoch, mark.token) < (excluded.epoch, excluded.token);
      end if;
    end if;
  end loop;
end $holdfast$;
${names.leases ? guardSql(names.guard, names.leases) : ''}`
}

/**
 * Nobody else is granted the name, or the slots of a permit, until the transaction ends: a grant counts what it cannot lock.
 * `for key share` does not block renewals.
 */
function guardSql(guard: string, { lease, shared }: Names): string {
  return `
create or replace function ${guard}(_name text, _token bigint, _is_permit boolean default false) returns void
${FUNCTION}
declare
  _lease record;
begin
  if _is_permit then
    select _token as token, expires_at > clock_timestamp() and ttl > 0 as is_held into _lease
      from ${shared} where name = _name and token = _token for key share;
  else
    select token, id is not null and expires_at > clock_timestamp() as is_held into _lease
      from ${lease} where name = _name for key share;
  end if;
  if _lease.is_held and _lease.token = _token then
    return;
  end if;
  raise exception 'the lease % with token % is over', to_json(_name), _token
    using errcode = '${OVER}', detail = json_build_object(
      'resource', _name, 'epoch', 0, 'token', _token::text,
      'highest', json_build_object('epoch', 0, 'token', coalesce(_lease.token, 0)::text))::text;
end $holdfast$;
`
}

/**
 * The statement that checks the leases, then raises the marks in this order, or refuses. Its values are inline, so that
 * every client needs one round trip.
 */
export function raiseSql(names: FenceNames, presented: readonly Presented[]): string {
  const guards = presented.flatMap(({ name, mark }) =>
    names.leases && name !== undefined
      ? [`${names.guard}(${literal(name)}, ${mark.token}${isAlone(mark) ? '' : ', true'})`]
      : [],
  )
  const marks = presented.map(({ resource, mark }) => {
    const permit = isAlone(mark) ? '' : `, ${mark.limit}, '{${mark.slots}}'`
    return `${names.raise}(${literal(resource)}, ${mark.epoch}, ${mark.token}${permit})`
  })
  return `select ${[...guards, ...marks].join(', ')}`
}

/** A fence for the rows of one table. */
export interface RowFence {
  /** The table, with or without its schema: `invoices`, `billing.invoices`. */
  readonly table: string
  /** The column for the token of the last writer of the row. @default 'lock_version' */
  readonly column?: string | undefined
  /** The resource of one mark for all rows, in addition to the token of each row. @default none */
  readonly resource?: string | undefined
  /** The epoch of that mark. @default 0 */
  readonly epoch?: number | undefined
}

/** A column for the token of the last writer of each row, and a trigger that refuses lower tokens. */
export function rowSql(
  { raise }: FenceNames,
  { table, column = 'lock_version', resource, epoch = 0 }: RowFence,
): string {
  const parts = table.split('.')
  if (parts.length > 2) throw invalid(`the table must be TABLE or SCHEMA.TABLE, not ${show(table)}`)
  const quoted = parts.map(part => identifier(part, 'table')).join('.')
  const trigger = [
    ...parts.slice(0, -1).map(part => identifier(part, 'schema')),
    identifier(`${parts.at(-1)}_fence`, 'table'),
  ].join('.')
  const version = identifier(column, 'column')
  const raised =
    resource === undefined ? '' : `  perform ${raise}(${quotable(resource)}, ${epoch}, coalesce(new.${version}, 0));\n`
  return `
-- The token of the last writer of each row. Every insert and update of ${quoted} sets it to that of its own lease.
alter table ${quoted} add column if not exists ${version} bigint not null default 0;

create or replace function ${trigger}() returns trigger
language plpgsql volatile
set search_path = pg_catalog
as $holdfast$
begin
  if tg_op = 'UPDATE' and (new.${version} is null or new.${version} < old.${version}) then
    raise exception ${quotable(`token % is refused: the row of ${quoted.replaceAll('%', '%%')} has seen %`)}, new.${version}, old.${version}
      using errcode = '${STALE}', hint = 'a newer holder has written: stop', detail = json_build_object(
        'resource', tg_table_name, 'epoch', 0, 'token', coalesce(new.${version}, 0)::text,
        'highest', json_build_object('epoch', 0, 'token', coalesce(old.${version}, 0)::text))::text;
  end if;
${raised}  return new;
end $holdfast$;

drop trigger if exists holdfast_fence on ${quoted};
create trigger holdfast_fence before insert or update on ${quoted}
  for each row execute function ${trigger}();
`
}

/** A literal for the body of a function. It contains no `$`, because a dollar quote ends the body. */
function quotable(text: string): string {
  return literal(text).replaceAll('$', String.raw`\x24`)
}

/** PostgreSQL silently truncates longer identifiers. */
function identifier(name: string, what: string): string {
  if (name === '' || Buffer.byteLength(name) > 63 || /[\p{Cc}$]/u.test(name))
    throw invalid(`the ${what} must be a name of 1 to 63 bytes without $ and control characters, not ${show(name)}`)
  return `"${name.replaceAll('"', '""')}"`
}
