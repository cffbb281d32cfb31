import { invalid, show } from '../../contract/check.ts'
import { literal } from '../../stores/postgres/postgres-js.ts'
import { schemaIfMissing } from '../../stores/postgres/schema.ts'
import type { Showing } from '../fence.ts'
import type { FenceNames } from './names.ts'

/** SQLSTATE of a token that is refused. Its detail is JSON, for `failure.ts`. */
export const STALE = 'HF412'
/** SQLSTATE of a lease that is over, told by its row. */
export const OVER = 'HF410'

/**
 * A transaction of an older holder that is stopped in its middle has the row of the mark locked: who waits for it hears
 * of that before the limit of a request (5 s) is over.
 */
const FUNCTION = `language plpgsql volatile
set search_path = pg_catalog
set lock_timeout = 4000
as $holdfast$
#variable_conflict use_column`

/**
 * The table of marks and the functions; can be carried out again and again. A holder that shows the same token again
 * writes nothing, and shares the row with others that do, so that its own transactions run side by side; a newer one
 * waits until these have ended. For that all stand in line for an advisory lock: shares of a row are given past those who
 * wait to write it, so that an older holder whose transactions overlap without end would keep a newer one out for ever.
 */
export function marksSql(names: FenceNames): string {
  const { schema, marks, raise } = names
  return `${schemaIfMissing(schema)}

create table if not exists ${marks} (
  resource text collate "C" primary key,
  lineage integer not null default 0 check (lineage >= 0),
  token bigint not null check (token >= 0),
  raised_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);
comment on table ${marks} is 'Holdfast marks, format 1: the highest token that each resource was shown';

-- Call it first of all in the transaction that writes. It raises the SQLSTATE ${STALE} if a higher token was shown.
create or replace function ${raise}(_resource text, _lineage integer, _token bigint) returns void
${FUNCTION}
declare
  _seen record;
begin
  select lineage, token into _seen from ${marks} where resource = _resource;
  if (_seen.lineage, _seen.token) = (_lineage, _token) then
    perform pg_advisory_xact_lock_shared(hashtext('${marks}'), hashtext(_resource));
    perform 1 from ${marks} where resource = _resource and lineage = _lineage and token = _token for share;
    if found then
      return;
    end if;
  elsif (_seen.lineage, _seen.token) > (_lineage, _token) is not true then
    perform pg_advisory_xact_lock(hashtext('${marks}'), hashtext(_resource));
  end if;
  -- Who is late needs no lock of the row, and would wait with it for all that the newest holder does.
  select lineage, token into _seen from ${marks} where resource = _resource;
  if not found or (_seen.lineage, _seen.token) <= (_lineage, _token) then
    insert into ${marks} as mark (resource, lineage, token) values (_resource, _lineage, _token)
      on conflict (resource) do update
      set lineage = excluded.lineage, token = excluded.token, raised_at = clock_timestamp()
      where (mark.lineage, mark.token) <= (excluded.lineage, excluded.token);
    if found then
      return;
    end if;
    select lineage, token into _seen from ${marks} where resource = _resource;
  end if;
  raise exception 'token %:% is refused: % has seen %:%',
    _lineage, _token, to_json(_resource), _seen.lineage, _seen.token
    using errcode = '${STALE}', hint = 'a newer holder has written: stop', detail = json_build_object(
      'resource', _resource, 'lineage', _lineage, 'token', _token::text,
      'highest', json_build_object('lineage', _seen.lineage, 'token', _seen.token::text))::text;
end $holdfast$;
${names.leases ? guardSql(names.guard, names.leases.lease) : ''}`
}

/** Until the transaction ends nobody else is granted the name; renewals go on beside `for key share`. */
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
      'resource', _name, 'lineage', 0, 'token', _token::text,
      'highest', json_build_object('lineage', 0, 'token', coalesce(_lease.token, 0)::text))::text;
end $holdfast$;
`
}

/** The statement that raises a mark or refuses, with the values in it: a round trip whatever the client. */
export function raiseSql(names: FenceNames, { resource, mark }: Showing, name?: string): string {
  const guard = names.leases && name !== undefined ? `${names.guard}(${literal(name)}, ${mark.token}), ` : ''
  return `select ${guard}${names.raise}(${literal(resource)}, ${mark.lineage}, ${mark.token})`
}

/** What the rows of a table are held to. */
export interface RowFence {
  /** Perhaps with its schema: `invoices`, `billing.invoices`. */
  readonly table: string
  /** @default 'lock_version' */
  readonly column?: string | undefined
  /** One mark for all rows, beside that of each. @default none */
  readonly resource?: string | undefined
  /** Of that mark. @default 0 */
  readonly lineage?: number | undefined
}

/** A column for the token of the last writer of each row, and a trigger that refuses lower ones. */
export function rowSql(
  { raise }: FenceNames,
  { table, column = 'lock_version', resource, lineage = 0 }: RowFence,
): string {
  const parts = table.split('.')
  if (parts.length > 2) throw invalid(`the table is TABLE or SCHEMA.TABLE, not ${show(table)}`)
  const quoted = parts.map(part => identifier(part, 'table')).join('.')
  const trigger = [
    ...parts.slice(0, -1).map(part => identifier(part, 'schema')),
    identifier(`${parts.at(-1)}_fence`, 'table'),
  ].join('.')
  const version = identifier(column, 'column')
  const raised =
    resource === undefined ? '' : `  perform ${raise}(${quotable(resource)}, ${lineage}, new.${version});\n`
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
        'resource', tg_table_name, 'lineage', 0, 'token', coalesce(new.${version}, 0)::text,
        'highest', json_build_object('lineage', 0, 'token', old.${version}::text))::text;
  end if;
${raised}  return new;
end $holdfast$;

drop trigger if exists holdfast_fence on ${quoted};
create trigger holdfast_fence before insert or update on ${quoted}
  for each row execute function ${trigger}();
`
}

/** A literal in the body of a function, whose end is a dollar quote. */
function quotable(text: string): string {
  return literal(text).replaceAll('$', String.raw`\x24`)
}

/** Longer ones are cut off by PostgreSQL without a word. */
function identifier(name: string, what: string): string {
  if (name === '' || Buffer.byteLength(name) > 63 || /[\p{Cc}$]/u.test(name))
    throw invalid(`the ${what} must be a name of 1 to 63 bytes, without $ and control characters, not ${show(name)}`)
  return `"${name.replaceAll('"', '""')}"`
}
