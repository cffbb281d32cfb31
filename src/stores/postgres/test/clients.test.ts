import { Client, Pool } from 'pg'
import postgresJs from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { until } from '../../../../lab/servers/until.ts'
import { clients } from '../../../../test/harnesses/postgres.ts'
import { ROOT, scriptNode } from '../../../../test/script-node.ts'
import { createLocks } from '../../../index.ts'
import { claimOf, failureOf, hold, look, signal } from '../../redis/test/support.ts'
import { migrate, type PostgresClient, postgres } from '../index.ts'

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres({ password: 'p@ss:w/rd#%' })
})
afterAll(() => server.stop())

describe.each(Object.entries(clients))('%s', (name, create) => {
  test('works, and is neither configured nor closed', async () => {
    const { client, close } = create(server.url())
    const store = postgres(client, { create: true })
    const [first, second] = [claimOf(`${name} a`), claimOf(`${name} a`, { queue: true })]
    await hold(store, first)
    let woken = false
    expect(await store.acquire(second, signal)).toMatchObject({ held: false, ahead: 0 })
    await store.watch?.(second, () => (woken = true), signal)
    expect(await store.renew(first, signal)).toMatchObject({ held: true })
    expect(await look(store, { prefix: name })).toHaveLength(2)
    expect(await store.release(first, signal)).toBe('released')
    await until('the waiter is woken', () => woken)
    await hold(store, second)
    expect(await store.break(second.name, { by: 'test' }, signal)).toBeTypeOf('bigint')
    expect(await store.release(claimOf(`${name} a`), signal)).toBe('gone')
    await store[Symbol.asyncDispose]()
    if (client instanceof Client) await client.connect()
    const ask = client as Client & { unsafe?(query: string): Promise<unknown[]> }
    const rows = ask.unsafe ? await ask.unsafe('select 1 as one') : (await ask.query('select 1 as one')).rows
    expect(rows).toEqual([{ one: 1 }])
    await (client instanceof Client ? client.end() : close())
  })

  test('closes its own connections', async () => {
    const { client, close } = create(server.url())
    const store = postgres(client, { create: true })
    const claim = claimOf(`${name} b`)
    await hold(store, claim)
    await store.watch?.(claim, () => {}, signal)
    await store[Symbol.asyncDispose]()
    await close()
    const others = (): Promise<object[]> =>
      server.query("select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()")
    await until('all are closed', async () => (await others()).length === 0)
  })
})

test('works with clients that convert values and columns', async () => {
  const options = { transform: { ...postgresJs.camel, undefined: null }, types: { bigint: postgresJs.BigInt } }
  const sql = postgresJs(server.url(), options)
  await using store = postgres(sql, { create: true })
  const claim = claimOf("it's \\ $1 $2 {}", { owner: 'a $1', note: "'; drop table holdfast.lease; --" })
  await hold(store, claim)
  expect(await look(store, { name: claim.name })).toMatchObject([{ owner: claim.owner, note: claim.note }])
  await sql.end({ timeout: 0 })
})

test('renews and releases while the application has used up its pool', async () => {
  const pool = new Pool({ connectionString: server.url(), max: 2 })
  const locks = createLocks(postgres(pool, { create: true }))
  const taken = [await pool.connect(), await pool.connect()]
  const lease = await locks.acquire('exhausted')
  expect(await lease.extend(60_000)).toBeGreaterThan(50_000)
  expect(await lease.release()).toBe('released')
  for (const client of taken) client.release()
  await locks.close()
  await pool.end()
})

test.each([
  [undefined, 'a undefined'],
  [null, 'null'],
  ['postgres://host', 'a string'],
  [{}, 'an object of Object'],
  [new Map(), 'an object of Map'],
])('refuses %o, which is no client', (client, what) => {
  expect(() => postgres(client as PostgresClient)).toThrow(
    `postgres(client) was given ${what}: pass a Pool or Client of pg`,
  )
})

test('refuses invalid options', async () => {
  const client = new Pool()
  const wrong: [object, RegExp][] = [
    [{ tabel: 'x' }, /no option "tabel", only schema, table, create, direct/],
    [{ schema: 'a"; drop table x; --' }, /the schema must be 1 to 40 of a-z/],
    [{ table: '' }, /the table must be 1 to 40/],
    [{ table: 'x'.repeat(41) }, /the table must be/],
    [{ schema: 5 }, /the schema must be a string/],
    [{ create: 'yes' }, /create must be true or false, not "yes"/],
    [{ direct: 'postgres://direct' }, /the option direct was given a string/],
  ]
  for (const [options, message] of wrong)
    expect(() => postgres(client, options), JSON.stringify(options)).toThrow(message)
})

test.each(['pg', 'postgres'])(
  'keeps no process alive that uses %s, and lets one end that forgot to close',
  async name => {
    const make =
      name === 'pg'
        ? `new (await import('pg')).default.Pool({ connectionString: url })`
        : `(await import('postgres')).default(url)`
    const program = `
    const url = ${JSON.stringify(server.url())}
    const { createLocks } = await import('${ROOT}/src/index.ts')
    const { migrate, postgres } = await import('${ROOT}/src/stores/postgres/index.ts')
    const client = ${make}
    for (let turn = 0; turn < 2; turn += 1) await migrate(client, { schema: 'quiet' }) // the server reports many notices
    const locks = createLocks(postgres(client, { schema: 'quiet' }))
    const lease = await locks.acquire('alive ${name}')
    await locks.acquire('alive ${name}', { wait: 200 }).catch(() => {}) // opens the connection for notifications
    await lease.release()
    console.log('done')`
    const { code, stdout, stderr } = await scriptNode(['--input-type=module', '-e', program], { folder: ROOT })
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'done\n', stderr: '' })
  },
)

test('uses the client of postgres.js itself where its package cannot be loaded, and refuses advisory locks there', async () => {
  const program = `
    import { registerHooks } from 'node:module'
    import postgresJs from 'postgres'
    registerHooks({
      resolve(specifier, context, next) {
        if (specifier !== 'postgres') return next(specifier, context)
        throw Object.assign(new Error("Cannot find module 'postgres'"), { code: 'MODULE_NOT_FOUND' })
      },
    })
    const { createLocks } = await import('${ROOT}/src/index.ts')
    const { advisory, postgres } = await import('${ROOT}/src/stores/postgres/index.ts')
    const sql = postgresJs('${server.url()}')
    const [one, two] = [0, 1].map(() => createLocks(postgres(sql, { create: true, schema: 'bundled' })))
    const lease = await one.acquire('bundled')
    const waiting = two.acquire('bundled')
    await lease.release()
    await (await waiting).release()
    console.log((await sql.unsafe('select count(*)::integer as names from bundled.lease'))[0].names)
    await createLocks(advisory(sql, { schema: 'bundled' })).acquire('bundled').catch(error => console.log(error.message))
    for (const locks of [one, two]) await locks.close()
    await sql.end({ timeout: 0 })`
  const { code, stdout, stderr } = await scriptNode(['--input-type=module', '-e', program], { folder: ROOT })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(
    /^1\nadvisory locks need their own connection, .* from the bundle, or use postgres\(client\)\n$/,
  )
})

test('finds the writable server among the hosts of postgres.js', async () => {
  await using readOnly = await startPostgres({ config: { default_transaction_read_only: 'on' } })
  for (const { url, options } of [
    { url: server.url(), options: '' },
    { url: readOnly.url(), options: '-c default_transaction_read_only=off' },
  ])
    await migrate(new Pool({ connectionString: url, options }))
  const address = `${server.host}:${server.port}`
  const sql = postgresJs(server.url().replace(address, `${readOnly.host}:${readOnly.port},${address}`))
  const locks = createLocks(postgres(sql))
  await (await locks.acquire('several hosts', { wait: 5_000 })).release()
  await locks.close()
  await sql.end({ timeout: 0 })
})

test('creates its tables once, even if many clients start together', async () => {
  const clients = Array.from({ length: 8 }, () => new Pool({ connectionString: server.url() }))
  const stores = clients.map(client => postgres(client, { create: true, schema: 'together' }))
  const answers = await Promise.allSettled(stores.map((store, index) => hold(store, claimOf(`at once ${index}`))))
  expect(answers.map(({ status }) => status)).toEqual(Array(8).fill('fulfilled'))
  for (const store of stores) await store[Symbol.asyncDispose]()
})

test('keeps tables with different names separate', async () => {
  const pool = new Pool({ connectionString: server.url() })
  await using one = postgres(pool, { create: true, schema: 'other', table: 'job' })
  await using two = postgres(pool, { create: true, schema: 'other', table: 'order' })
  await hold(one, claimOf('same'))
  await hold(two, claimOf('same'))
  expect(await failureOf(hold(one, claimOf('same')))).toMatchObject({ message: expect.stringMatching(/held by test/) })
  expect(await server.query('select name from other."order"')).toEqual([{ name: 'same' }])
  await pool.end()
})
