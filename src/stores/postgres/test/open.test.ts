import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../../../lab/servers/postgres.ts'
import { ROOT, scriptNode } from '../../../../test/script-node.ts'
import { holdfast } from '../../../cli/test/holdfast.ts'
import { openStore } from '../../../connect.ts'
import { claimOf, failureOf, hold } from './support.ts'

const password = 'p@ss:w/rd#%?'

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres({ password })
  await server.query('create database "an app"')
})
afterAll(() => server.stop())

test('opens what the URL names: user, password, database, schema, table', async () => {
  const claim = claimOf('a')
  const url = server
    .url()
    .replace(/postgres$/, 'an%20app')
    .replace('postgres:', 'postgresql:')
  {
    await using store = await openStore(`${url}?table=own.job&create=true&application_name=mine&sslmode=disable`)
    expect(store.kind).toBe('postgres')
    await hold(store, claim)
    expect(await server.query("select 1 as one from pg_stat_activity where application_name = 'mine'")).toHaveLength(1)
  }
  await using again = await openStore(`${url}?table=own.job&direct=false`)
  await hold(again, claim)
  expect(again.watch).toBeUndefined()
  await using elsewhere = await openStore(`${server.url()}?create=true`)
  await hold(elsewhere, claimOf('a'))
})

test('renews in a thread, over its own connections', async () => {
  const program = `
    const { connect } = await import('${ROOT}/src/index.ts')
    const locks = await connect('${server.url()}?create=true', { ttl: 2_000, heartbeat: 'thread', maxBlocked: 20_000 })
    const lease = await locks.acquire('in a thread')
    const end = performance.now() + 4_500
    while (performance.now() < end);
    lease.assertHeld()
    await lease.release()
    await locks.close()
    console.log('held')`
  const outcome = await scriptNode(['--input-type=module', '-e', program], { folder: ROOT })
  expect(outcome).toEqual({ code: 0, stdout: 'held\n', stderr: '' })
})

test('is opened over postgres.js if pg is missing, and says what to install if both are', async () => {
  const attempt = async (...missing: string[]): Promise<string> => {
    const program = `
      import { registerHooks } from 'node:module'
      registerHooks({
        resolve(specifier, context, next) {
          if (!${JSON.stringify(missing)}.includes(specifier)) return next(specifier, context)
          throw Object.assign(new Error("Cannot find module '" + specifier + "'"), { code: 'MODULE_NOT_FOUND' })
        },
      })
      const { connect } = await import('${ROOT}/src/index.ts')
      try {
        const locks = await connect('${server.url()}?create=true')
        console.log((await locks.tryAcquire('driver')) !== undefined)
        await locks.close({ grace: 0 })
      } catch (error) {
        console.log(error.code + ': ' + error.message)
      }`
    const { stdout, stderr } = await scriptNode(['--input-type=module', '-e', program], { folder: ROOT })
    expect(stderr).toBe('')
    return stdout
  }
  expect(await attempt('pg')).toBe('true\n')
  expect(await attempt('pg', 'postgres')).toMatch(
    /^DRIVER_MISSING: a postgres: store needs a client of PostgreSQL: npm i pg where holdfast is installed/,
  )
})

test('says what is wrong with a URL, and never what the password is', async () => {
  const wrong: Record<string, RegExp> = {
    'postgres://': /has no host/,
    'postgres:app': /has no host/,
    'postgres://user:s3cret@host:99999': /port 99999/,
    'postgres://user:s3cret@ho st': /is invalid/,
    'postgres://user:s3cret@a:1,b:2/app': /is invalid/,
    'postgres://user:s3cret@host/app/1': /has two databases/,
    'postgres://user:s3cret@host/app#1': /has a #/,
    'postgres://user:s3cret%@host/app': /a % that encodes nothing/,
    'postgres://user:s3cret@host/app?ttl=5': /no option "ttl", only table, create, direct, minTtl, sslmode/,
    'postgres://user:s3cret@host/app?table=.lease': /schema must be 1 to 40/,
    'postgres://user:s3cret@host/app?table=a.b.c': /table must be 1 to 40/,
    'postgres://user:s3cret@host/app?table=a&table=b': /table is given twice/,
    'postgres://user:s3cret@host/app?schema=public': /schema, which is for Prisma: leave it out/,
    'postgres://user:s3cret@%ff/app': /a % that encodes nothing/,
    'postgres://user:s3cret@host/app?create=yes': /create in a URL must be true or false, not "yes"/,
    'postgres://user:s3cret@host/app?direct=redis://x': /direct must be another postgres:/,
    'postgres://user:s3cret@host/app?direct=there': /is invalid/,
  }
  for (const [url, message] of Object.entries(wrong)) {
    const error = await failureOf(openStore(url))
    expect(error, url).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) })
    expect(error.message).not.toMatch('s3cret')
  }
})

test('L16: no message repeats a password with a special character that nobody encoded', async () => {
  for (const special of ['?', '/', '#', '%', '?a=1&'])
    for (const password of [`12${special}s3cret`, `x${special}s3cret`]) {
      const error = await failureOf(openStore(`postgres://user:${password}@host`))
      expect(error, special).toMatchObject({ code: 'INVALID_ARGUMENT' })
      expect(error.message).not.toMatch('s3cret')
    }
})

test('holdfast migrate creates the tables, and holdfast run uses them', async () => {
  const env = { HOLDFAST_STORE: `${server.url()}?table=cli.job` }
  const missing = await holdfast(['run', 'nightly', '--', 'true'], { env })
  expect(missing).toMatchObject({
    code: 78,
    err: expect.stringMatching(/"cli"."job" does not exist: create it with holdfast migrate/),
  })
  expect(await holdfast(['migrate'], { env })).toMatchObject({ code: 0, out: '"cli"."job" is ready\n', err: '' })
  expect(await holdfast(['migrate', '--json'], { env })).toMatchObject({
    code: 0,
    out: expect.stringMatching('"migrated": true'),
  })
  const run = await holdfast(['run', 'nightly', '--', 'sh', '-c', 'echo $HOLDFAST_TOKEN'], { env })
  expect(run).toMatchObject({ code: 0, out: expect.stringMatching(/^\d{16}\n$/) })
  expect(await holdfast(['ls'], { env })).toMatchObject({ code: 0, out: 'no name is held\n' })
})

test('holdfast migrate --print-sql prints the SQL and changes nothing', async () => {
  const env = { HOLDFAST_STORE: `${server.url()}?table=printed.lease` }
  const { code, out, err } = await holdfast(['migrate', '--print-sql'], { env })
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(await failureOf(server.query('select from printed.lease'))).toMatchObject({
    message: expect.stringMatching('does not exist'),
  })
  await server.query(out)
  await server.query(out)
  await using store = await openStore(env.HOLDFAST_STORE)
  await hold(store, claimOf('a'))
  expect((await holdfast(['migrate', '--print-sql'], { env: { HOLDFAST_STORE: undefined } })).out).toMatch(
    /"holdfast"."lease"/,
  )
})

test('holdfast migrate does nothing for other stores, refuses unknown URLs, and takes no arguments', async () => {
  const { code, out } = await holdfast(['migrate', '--store', 'sqlite:unused.db'])
  expect({ code, out }).toEqual({
    code: 0,
    out: 'nothing to do: a store of sqlite creates what it needs itself\n',
  })
  for (const [store, message] of [
    ['postgress://host/app', /no store has the scheme postgress: use one of .*postgres:/],
    ['app', /the URL of the store has no scheme: use one of/],
  ] as const)
    for (const args of [['migrate'], ['migrate', '--print-sql']])
      expect(await holdfast([...args, '--store', store])).toMatchObject({
        code: 64,
        out: '',
        err: expect.stringMatching(message),
      })
  expect(await holdfast(['migrate', 'now'])).toMatchObject({
    code: 64,
    err: expect.stringMatching(/migrate takes options only/),
  })
})
