import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type PgBouncer, startPgBouncer } from '../../../lab/servers/pgbouncer.ts'
import { type PostgresServer, startPostgres } from '../../../lab/servers/postgres.ts'
import { until } from '../../../lab/servers/until.ts'
import { migrate } from '../../index.ts'
import { doctor, finding } from './doctor.ts'

let primary: PostgresServer
let standby: PostgresServer
let pooler: PgBouncer

beforeAll(async () => {
  primary = await startPostgres()
  await migrate(primary.url())
})

afterAll(async () => {
  await Promise.all([pooler, standby, primary].map(server => server?.stop()))
})

// In this order: the standby comes last, because the primary reports it.
describe('holdfast doctor over PostgreSQL', () => {
  test('finds nothing on a migrated server, and leaves no row', async () => {
    expect(await doctor(primary.url())).toEqual({
      code: 0,
      levels: {
        ...{ lease: 'ok', tls: 'ok', clock: 'ok', version: 'ok', 'postgres-schema': 'ok', 'postgres-standby': 'ok' },
        ...{ 'postgres-durability': 'ok', 'postgres-failover': 'ok', 'postgres-pooler': 'ok' },
      },
    })
    expect(await primary.query("select from holdfast.lease where name like 'holdfast-doctor-%'")).toEqual([])
  })

  test('finds that the tables are missing', async () => {
    const { code, levels } = await doctor(`${primary.url()}?table=missing`)
    expect(code).toBe(2)
    expect(levels).toMatchObject({ lease: 'problem', 'postgres-schema': 'problem' })
  })

  test('finds tables of another format', async () => {
    await migrate(`${primary.url()}?table=newer`)
    await primary.query("comment on table holdfast.newer is 'Holdfast leases, format 999'")
    expect(await doctor(`${primary.url()}?table=newer`)).toMatchObject({
      code: 2,
      levels: { 'postgres-schema': 'problem' },
    })
  })

  test('synchronous_commit off is no finding, because grants are durable all the same', async () => {
    await primary.query('alter database postgres set synchronous_commit = off')
    expect(await doctor(primary.url())).toMatchObject({ code: 0, levels: { 'postgres-durability': 'ok' } })
    expect(await finding(primary.url(), 'postgres-durability')).toContain('synchronous_commit off')
    await primary.query('alter database postgres reset synchronous_commit')
  })

  test.each([
    ['session', 'that seems to be in session mode'],
    ['transaction', 'in transaction mode'],
    ['statement', 'in statement mode'],
  ] as const)('finds that a pooler is in %s mode', async (mode, text) => {
    await using of = await startPgBouncer(primary, { mode, size: 10 })
    expect(await finding(of.url, 'postgres-pooler')).toBe(`warning: the connection goes through a pooler ${text}`)
  })

  test('a pooler whose mode cannot be found out does not hide what else is found', async () => {
    await using of = await startPgBouncer(primary, { mode: 'session', size: 1 })
    const { levels } = await doctor(of.url)
    expect(levels).toMatchObject({ 'postgres-pooler': 'warning', 'postgres-schema': 'ok' })
    expect(levels).not.toHaveProperty('unchecked')
  })

  test('finds a pooler, unless notifications have a direct connection', async () => {
    pooler = await startPgBouncer(primary)
    expect((await doctor(pooler.url)).levels).toMatchObject({ lease: 'ok', 'postgres-pooler': 'warning' })
    const direct = `${pooler.url}?direct=${encodeURIComponent(primary.url())}`
    expect((await doctor(direct)).levels).toMatchObject({ lease: 'ok', 'postgres-pooler': 'ok' })
  })

  test('finds what this user may not do, by trying', async () => {
    await primary.query("create role nobody login password 'secret'")
    const url = primary.url('nobody')
    expect(await doctor(url)).toMatchObject({ code: 2, levels: { lease: 'problem', 'postgres-schema': 'ok' } })
  })

  test('finds that fsync is off', async () => {
    await primary.query('alter system set fsync = off')
    await primary.query('select pg_reload_conf()')
    await until('fsync is off', async () => (await primary.query<{ fsync: string }>('show fsync'))[0]?.fsync === 'off')
    expect(await doctor(primary.url())).toMatchObject({ code: 2, levels: { 'postgres-durability': 'problem' } })
  })

  test('finds a standby, from both sides', async () => {
    standby = await startPostgres({ standbyOf: primary })
    const [behind, ahead] = await Promise.all([doctor(standby.url()), doctor(primary.url())])
    expect(behind.levels).toMatchObject({ lease: 'problem', 'postgres-standby': 'problem' })
    expect(ahead.levels).toMatchObject({ lease: 'ok', 'postgres-failover': 'warning' })
  })
})
