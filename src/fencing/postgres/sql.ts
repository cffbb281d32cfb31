import { invalid, show } from '../../contract/check.ts'
import { schemaIfMissing } from '../../stores/postgres/schema.ts'
import { literal } from '../../stores/postgres/sql.ts'
import type { Presented } from '../fence.ts'
import type { FenceNames } from './names.ts'

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
 * A transaction that presents the current token again writes nothing and takes a shared lock on the row. So transactions
 * of one holder run concurrently, and a newer holder waits until they have ended. All of them first take an advisory
 * lock, which is fair. Row locks are not: shared locks overtake a waiting writer, so an older holder with overlapping
 * transactions would keep a newer one out for ever.
 */
export function marksSql(names: FenceNames): string {
  const { schema, marks, raise } = names
  return `${schemaIfMissing(schema)}

create table if not exists ${marks} (
  resource text collate "C" primary key,
  epoch integer not null default 0 check (epoch >= 0),
  token bigint not null check (token >= 0),
  raised_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);
comment on table ${marks} is 'Holdfast marks, format 1: the highest token that each resource was shown';

-- Call it first in the transaction that writes. It raises the SQLSTATE ${STALE} if a higher token was shown.
create or replace function ${raise}(_resource text, _epoch integer, _token bigint) returns void
${FUNCTION}
declare
  _seen record;
begin
  select epoch, token into _seen from ${marks} where resource = _resource;
  if (_seen.epoch, _seen.token) = (_epoch, _token) then
    perform pg_advisory_xact_lock_shared(hashtext('${marks}'), hashtext(_resource));
    perform 1 from ${marks} where resource = _resource and epoch = _epoch and token = _token for share;
    if found then
      return;
    end if;
  elsif (_seen.epoch, _seen.token) > (_epoch, _token) is not true then
    perform pg_advisory_xact_lock(hashtext('${marks}'), hashtext(_resource));
  end if;
  -- A late holder needs no row lock. With one, it would wait for the transaction of the newest holder.
  select epoch, token into _seen from ${marks} where resource = _resource;
  if not found or (_seen.epoch, _seen.token) <= (_epoch, _token) then
    insert into ${marks} as mark (resource, epoch, token) values (_resource, _epoch, _token)
      on conflict (resource) do update
      set epoch = excluded.epoch, token = excluded.token, raised_at = clock_timestamp()
      where (mark.epoch, mark.token) <= (excluded.epoch, excluded.token);
    if found then
      return;
    end if;
    select epoch, token into _seen from ${marks} where resource = _resource;
  end if;
  raise exception 'token %:% is refused: % has seen %:%',
    _epoch, _token, to_json(_resource), _seen.epoch, _seen.token
    using errcode = '${STALE}', hint = 'a newer holder has written: stop', detail = json_build_object(
      'resource', _resource, 'epoch', _epoch, 'token', _token::text,
      'highest', json_build_object('epoch', _seen.epoch, 'token', _seen.token::text))::text;
end $holdfast$;
${names.leases ? guardSql(names.guard, names.leases.lease) : ''}`
}

/** Nobody else is granted the name until the transaction ends. `for key share` does not block renewals. */
function guardSql(guard: string, leases: string): string {
  return `
create or replace function ${guard}(_name text, _token bigint) returns void
${FUNCTION}
declare
  _lease record;
begin
  select token, id is not null and expires_at > clock_timestamp() as is_held into _lease
    from ${leases} where name = _name for key share;
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
    names.leases && name !== undefined ? [`${names.guard}(${literal(name)}, ${mark.token})`] : [],
  )
  const marks = presented.map(
    ({ resource, mark }) => `${names.raise}(${literal(resource)}, ${mark.epoch}, ${mark.token})`,
  )
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
