import { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../lab/servers/postgres.ts'
import { failureOf } from '../../../test/support.ts'
import { LeaseError } from '../../contract/errors.ts'
import { fenceSql, postgresFence, rowFenceSql } from '../postgres/index.ts'
import { holder, stale } from './support.ts'

let server: PostgresServer
let pool: Pool

beforeAll(async () => {
  server = await startPostgres()
  await server.query(fenceSql())
  pool = new Pool({ connectionString: server.url() })
})
afterAll(async () => {
  await pool.end()
  await server.stop()
})

test('creates a trigger that refuses an update of a row by an older writer', async () => {
  await server.query('drop table if exists invoices')
  await server.query('create table invoices (id int primary key, cents int)')
  await server.query('insert into invoices values (1, 100)')
  await server.query(rowFenceSql({ table: 'invoices' }))
  await server.query(rowFenceSql({ table: 'invoices' })) // again and again
  await server.query('update invoices set cents = 200, lock_version = 7 where id = 1')
  await server.query('update invoices set cents = 300, lock_version = 7 where id = 1')
  const refused = failureOf(server.query('update invoices set cents = 1, lock_version = 6 where id = 1'))
  expect(await refused).toMatchObject({ code: 'HF412', hint: 'a newer holder has written: stop' })
  const ours = postgresFence(pool).transaction(holder('trigger', 6), client =>
    client.query('update invoices set cents = 1, lock_version = 6 where id = 1'),
  )
  await expect(ours).rejects.toEqual(stale(6n, 7n))
  expect(await server.query('select cents from invoices')).toEqual([{ cents: 300 }])
})

test('checks all rows against one mark if a resource is given', async () => {
  await server.query('drop schema if exists billing cascade')
  await server.query('create schema billing; create table billing.rows (id int primary key)')
  await server.query(rowFenceSql({ table: 'billing.rows', column: 'version', resource: "o'rows" }))
  await server.query('insert into billing.rows values (1, 7)')
  const refused = failureOf(server.query('insert into billing.rows values (2, 6)'))
  expect(await refused).toMatchObject({ code: 'HF412' })
  expect(await postgresFence(pool).marks.list("o'")).toMatchObject([{ resource: "o'rows", token: 7n }])
})

test('refuses a writer that sets no token, as one of the token 0', async () => {
  await server.query("drop table if exists nulls; delete from holdfast.fence where resource = 'nulls'")
  await server.query('create table nulls (id int primary key, version bigint)')
  await server.query('insert into nulls values (1, null)')
  await server.query(rowFenceSql({ table: 'nulls', column: 'version', resource: 'nulls' }))
  const fence = postgresFence(pool)
  const write = (text: string): Promise<unknown> =>
    fence.transaction(holder('writer of nulls', 1), client => client.query(text))
  await expect(write('update nulls set version = null')).rejects.toEqual(stale(0n, 0n))
  await write('insert into nulls values (2, 7)')
  await expect(write('insert into nulls values (3, null)')).rejects.toEqual(stale(0n, 7n))
})

test.each([
  ['no detail', ''],
  ['a detail of others', ", detail = 'mine'"],
  ['a detail without tokens', ", detail = '{}'"],
])('a refusal of others that has our SQLSTATE and %s is passed on', async (_, detail) => {
  const raise = `do $$ begin raise exception 'mine' using errcode = 'HF412'${detail}; end $$`
  const passed = postgresFence(pool).transaction(holder('others', 1), client => client.query(raise))
  expect(await failureOf(passed)).toMatchObject({ code: 'HF412', message: 'mine' })
})

test('works for any names of a table and its resource', async () => {
  await server.query(`drop table if exists "it's 5%"; create table "it's 5%" (id int primary key)`)
  const resource = String.raw`$holdfast$ 'and' \\n`
  await server.query(rowFenceSql({ table: "it's 5%", column: "ver'sion", resource }))
  await server.query(`insert into "it's 5%" values (1, 7)`)
  const refused = failureOf(server.query(`update "it's 5%" set "ver'sion" = 6`))
  expect(await refused).toMatchObject({ code: 'HF412', message: expect.stringContaining(`"it's 5%"`) })
  expect(await postgresFence(pool).marks.list('$')).toMatchObject([{ resource, token: 7n }])
})

test('of the marks may run repeatedly', async () => {
  await server.query(fenceSql())
  await server.query(fenceSql({ schema: 'other', table: 'marks', leases: true }))
  const fence = postgresFence(pool, { schema: 'other', table: 'marks' })
  await fence.touch(holder('elsewhere', 1))
  expect(await fence.marks.list()).toMatchObject([{ resource: 'elsewhere', epoch: 0, token: 1n }])
})

test('is refused for names that PostgreSQL would truncate', () => {
  for (const table of ['', 'a.b.c', 'x'.repeat(60), 'a$holdfast$b'])
    expect(() => rowFenceSql({ table })).toThrow(LeaseError)
})

test.each(['on', 'off'])('L20: any table can be fenced with standard_conforming_strings %s', async setting => {
  const table = String.raw`back\'; drop table canary; -- ` + setting
  await server.query(`drop table if exists "${table}"; create table if not exists canary (id int)`)
  await server.query(`create table "${table}" (id int primary key)`)
  await server.query(`set standard_conforming_strings = ${setting}; ${rowFenceSql({ table })}`)
  await server.query(`insert into "${table}" values (1, 7)`)
  const refused = failureOf(server.query(`update "${table}" set lock_version = 6`))
  expect(await refused).toMatchObject({ code: 'HF412', message: expect.stringContaining(table) })
  expect(await server.query('select from canary')).toEqual([])
})
