import postgresJs from 'postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { clients, type Owned } from '../../../../test/harnesses/postgres.ts'
import { postgresFence } from '../../../fencing/postgres/index.ts'
import { advisory, migrate, postgres } from '../index.ts'
import { forgetNames } from '../open.ts'
import { acquire, claimOf, hold, look, queryAt, signal } from './support.ts'

let server: PostgresServer

/** Functions and operators of PostgreSQL that statements here use, or might. */
const planted = `'abs,array_length,array_fill,ceil,chr,clock_timestamp,coalesce,current_setting,floor,format,hashtext,
  json_array_elements_text,json_array_length,now,obj_description,pg_advisory_unlock,pg_advisory_xact_lock,
  pg_advisory_xact_lock_shared,pg_backend_pid,pg_is_in_recovery,pg_notify,pg_try_advisory_lock,set_config,starts_with,
  statement_timestamp,to_json,to_regclass,to_regnamespace,to_timestamp,version'`

/**
 * What a role may do that can create in a schema of the path: put a copy of each before the one of PostgreSQL, and another
 * that fits the arguments better where those are of any type. Each makes that role a superuser if a superuser runs it.
 */
const plant = `
create function public.escalate() returns void language plpgsql as $$ begin
  if (select rolsuper from pg_catalog.pg_roles where rolname operator(pg_catalog.=) current_user) then
    execute 'alter role mallory superuser';
  end if;
end $$;
do $do$
declare
  _f record;
begin
  for _f in
    select proname, pg_catalog.pg_get_function_identity_arguments(oid) as arguments, prorettype::regtype as result, proretset
    from pg_catalog.pg_proc where pronamespace = 'pg_catalog'::regnamespace and prokind = 'f'
      and proname = any (pg_catalog.string_to_array(pg_catalog.regexp_replace(${planted}, '\\s', '', 'g'), ','))
      and not exists (select from unnest(proargtypes::oid[] || prorettype) t join pg_type p on p.oid = t where typtype = 'p' and typname <> 'void')
  loop
    execute pg_catalog.format('create function public.%I(%s) returns %s %s language plpgsql as $$ begin
      perform public.escalate(); %s end $$', _f.proname, _f.arguments, case when _f.proretset then 'setof' else '' end, _f.result,
      case when _f.result = 'void'::regtype or _f.proretset then '' else 'return null;' end);
  end loop;
  for _f in
    select distinct on (oprname, oprleft, oprright) oprname, oprleft::regtype as one, oprright::regtype as two, oprresult::regtype as result
    from pg_catalog.pg_operator where oprkind = 'b' and oprname = any (array['=', '<>', '<', '<=', '>', '>=', '+', '-', '*', '||', '<<', '|'])
      and (oprname, oprleft, oprright) not in (select oprname, oprleft, oprright from pg_operator where oprnamespace <> 'pg_catalog'::regnamespace)
      and not exists (select from pg_type p where p.oid in (oprleft, oprright, oprresult) and typtype = 'p')
      and oprleft in (20, 21, 23, 25, 19, 26, 16, 700, 701, 1700, 1184, 1186, 1082, 1114) and oprright in (20, 21, 23, 25, 19, 26, 16, 700, 701, 1700, 1184, 1186, 1082, 1114)
  loop
    execute pg_catalog.format('create function public.operate_%s(%s, %s) returns %s language plpgsql as $$ begin
      perform public.escalate(); return null; end $$',
      pg_catalog.md5(_f.oprname), _f.one, _f.two, _f.result);
    execute pg_catalog.format('create operator public.%s (leftarg = %s, rightarg = %s, function = public.operate_%s)',
      _f.oprname, _f.one, _f.two, pg_catalog.md5(_f.oprname));
  end loop;
end $do$;
`

const better = `
${[
  'numeric, integer, text, boolean, text',
  'numeric, integer, integer, text, boolean, text',
  'double precision, integer, integer, text, boolean, text',
  'integer, text',
  'integer, boolean',
  'integer',
  'text',
  'text, text',
  'integer, boolean, text, text, text, integer',
  'text, text, text, text, integer',
  'text, text, text, text, numeric',
  'numeric, json, text',
]
  .map(
    types => `create function public.json_build_array(${types}) returns json language plpgsql as
  $$ begin perform public.escalate(); return null; end $$;`,
  )
  .join('\n')}
create function public.json_build_object(text, json, text, text) returns json language plpgsql as
  $$ begin perform public.escalate(); return null; end $$;
`

beforeAll(async () => {
  server = await startPostgres()
  await server.query(
    'create role mallory login; create role boss superuser login; grant create on schema public to public',
  )
  await queryAt(server.url('mallory'), better + plant)
  // The worst that an admin may have set.
  await server.query('alter role boss set search_path = public, pg_catalog')
})
afterAll(() => server.stop())

async function isSafe(): Promise<boolean> {
  const [row] = await server.query<{ rolsuper: boolean }>("select rolsuper from pg_roles where rolname = 'mallory'")
  if (row?.rolsuper) await server.query('alter role mallory nosuperuser')
  return row?.rolsuper === false
}

test('H1: the shadowing functions and operators work', async () => {
  await queryAt(server.url('boss'), 'select 1::numeric * 1')
  expect(await isSafe()).toBe(false)
})

const both = Object.entries(clients).filter(([name]) => name !== 'pg Client') // which opens what a Pool opens

test.each(both)('H1: no statement over %s runs the functions and operators of others', async (name, create) => {
  const { client, close } = create(server.url('boss'))
  const check = async (what: string): Promise<void> => expect([what, await isSafe()]).toEqual([what, true])
  const table = name.replace(/\W/g, '_').toLowerCase()
  await migrate(client, { table })
  await migrate(client, { table })
  await check('migrate')
  for (const store of [postgres(client, { table }), advisory(client, { table })]) {
    const [claim, waiter] = [claimOf('a', { ttl: 9_000 }), claimOf('a', { queue: true, ttl: 9_000 })]
    await hold(store, claim)
    await check(`acquire ${store.kind}`)
    await acquire(store, waiter)
    await check(`wait ${store.kind}`)
    await store.watch?.(waiter, () => {}, signal)
    await check(`watch ${store.kind}`)
    expect(await store.renew({ ...claim, ttl: 8_000 }, signal)).toMatchObject({ held: true })
    await check(`renew ${store.kind}`)
    expect(await store.annotate({ ...claim, note: 'new' }, signal)).toBe(true)
    await check(`annotate ${store.kind}`)
    expect(await look(store, { prefix: '' })).toContainEqual(expect.objectContaining({ name: 'a', note: 'new' }))
    await check(`inspect ${store.kind}`)
    if (store.kind === 'postgres') await store.break('a', { by: 'test' }, signal)
    await check(`break ${store.kind}`)
    await store.release(claim, signal)
    await check(`release ${store.kind}`)
    await store.release(waiter, signal)
    await Promise.all(Array.from({ length: 600 }, (_, index) => hold(store, claimOf(`${index}`))))
    await check(`prune ${store.kind}`)
    await store[Symbol.asyncDispose]()
  }
  await forgetNames(`${server.url('boss')}?table=${table}`, ['a'])
  await check('forget')
  await close()
})

const fenced: Readonly<Record<string, (url: string) => Owned>> = {
  'pg Pool': clients['pg Pool'] as (url: string) => Owned,
  // It would read the types of the server first, by its own statement, which trusts the search path.
  'postgres.js'(url) {
    const client = postgresJs(url, { fetch_types: false })
    return { client, close: () => client.end({ timeout: 0 }) }
  },
}

test.each(Object.entries(fenced))(
  'H1: no statement of marks over %s runs the functions and operators of others',
  async (name, create) => {
    const { client, close } = create(server.url('boss'))
    const check = async (what: string): Promise<void> => expect([what, await isSafe()]).toEqual([what, true])
    const fence = postgresFence(client, { table: `fence_${name.replace(/\W/g, '_').toLowerCase()}` })
    await fence.install()
    await check('install')
    await fence.touch({ name: 'a', token: 5n })
    await check('touch')
    expect(await fence.marks.list()).toMatchObject([{ resource: 'a', token: 5n }])
    await check('list')
    expect(await fence.marks.advance('a')).toBe(1)
    await check('advance')
    expect(await fence.marks.prune(0, 'a')).toBe(1)
    await check('prune')
    await close()
  },
)
