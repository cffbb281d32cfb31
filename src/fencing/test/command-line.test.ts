import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { Redis } from 'ioredis'
import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newFolder } from '../../../lab/servers/folder.ts'
import { type PostgresServer, startPostgres } from '../../../lab/servers/postgres.ts'
import { startRedis } from '../../../lab/servers/redis.ts'
import { failureOf } from '../../../test/support.ts'
import { folder, holdfast } from '../../cli/test/holdfast.ts'
import { fileFence, fileMarks } from '../files/index.ts'
import { postgresFence } from '../postgres/index.ts'
import { redisFence } from '../redis/index.ts'
import { sqliteFence } from '../sqlite/index.ts'
import { holder, stale } from './support.ts'

let server: PostgresServer
let pool: Pool

beforeAll(async () => {
  server = await startPostgres()
  pool = new Pool({ connectionString: server.url() })
})
afterAll(async () => {
  await pool.end()
  await server.stop()
})

async function printed(...args: string[]): Promise<string> {
  const { code, out, err } = await holdfast(['fence', 'sql', ...args])
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return out
}

describe('holdfast fence sql', () => {
  test('prints the SQL of the marks and of a trigger for the writers of a table', async () => {
    await server.query(await printed())
    await server.query(await printed('--url', 'postgres://x?table=app.marks', '--leases'))
    await server.query('create table app.invoices (id int primary key)')
    const row = ['--table', 'app.invoices', '--column', 'version', '--resource', 'invoices', '--epoch', '2']
    await server.query(await printed(...row, '--url', 'postgres://x?table=app.marks'))
    await server.query('insert into app.invoices values (1, 7)')
    expect(await failureOf(server.query('insert into app.invoices values (2, 6)'))).toMatchObject({ code: 'HF412' })
    const marks = await holdfast(['fence', 'ls', '--json', '--url', `${server.url()}?table=app.marks`])
    expect(JSON.parse(marks.out)).toMatchObject([{ resource: 'invoices', epoch: 2, token: '7' }])
  })

  test('prints the table of SQLite too', async () => {
    const database = new DatabaseSync(join(folder, 'ledger.db'))
    database.exec(await printed('--url', 'sqlite:ledger.db'))
    sqliteFence(database).touch(holder('a', 1))
    database.close()
  })
})

describe('the marks', () => {
  const places = {
    async postgres() {
      await postgresFence(pool).install()
      return { url: server.url(), marks: postgresFence(pool).marks, async close() {} }
    },
    async sqlite() {
      const path = join(folder, 'ledger.db')
      const database = new DatabaseSync(path)
      const fence = sqliteFence(database)
      fence.install()
      return { url: `sqlite:${path}`, marks: fence.marks, close: async () => database.close() }
    },
    async files() {
      const exports = newFolder('exports of today')
      await fileFence().touch(holder('a', 1), join(exports, 'first.csv'))
      return { url: pathToFileURL(exports).href, marks: fileMarks(exports), async close() {} }
    },
    async redis() {
      const redis = await startRedis({ password: 's3cr@t' })
      const fence = redisFence(new Redis(redis.url, { lazyConnect: true }), { prefix: 'app' })
      const close = async (): Promise<void> => {
        await fence.close()
        await redis.stop()
      }
      return { url: `${redis.url}?prefix=app`, marks: fence.marks, close }
    },
  }

  test.each(Object.entries(places))('in %s are listed, advanced and pruned', async (_name, open) => {
    const { url, marks, close } = await open()
    await marks.raise('cli invoices', { epoch: 0, token: 2n ** 53n })
    await marks.raise('cli orders', { epoch: 3, token: 5n })
    const listed = await holdfast(['fence', 'ls', 'cli', '--url', url])
    const rows = [
      /^RESOURCE {6}EPOCH +TOKEN {2}UPDATED$/,
      /^cli invoices {6}0 {2}9007199254740992 {2}20\d\d-/,
      /^cli orders {8}3 +5 {2}20/,
    ]
    expect(listed.out.trimEnd().split('\n')).toEqual(rows.map(row => expect.stringMatching(row)))

    const advanced = await holdfast(['fence', 'advance', 'cli invoices', '--url', url])
    expect(advanced).toMatchObject({ code: 0, err: '' })
    expect(advanced.out).toMatch(/^cli invoices is now in epoch 1 .*\n.* give \{ epoch: 1 \}/)
    await expect(marks.raise('cli invoices', { epoch: 0, token: 2n ** 53n })).rejects.toEqual(stale(2n ** 53n, 0n))
    await marks.raise('cli invoices', { epoch: 1, token: 1n })
    const nothing = await holdfast(['fence', 'ls', 'cli x', '--url', url])
    expect(nothing).toMatchObject({ code: 0, out: 'no mark begins with cli x\n' })
    const nobody = await holdfast(['fence', 'advance', 'cli nobody', '--url', url, '--json'])
    expect({ code: nobody.code, ...JSON.parse(nobody.out) }).toEqual({
      code: 1,
      resource: 'cli nobody',
      advanced: false,
    })

    const kept = await holdfast(['fence', 'prune', '--older-than', '1h', '--url', url])
    expect(kept).toMatchObject({ code: 0, out: 'no mark is older than 1h\n' })
    const none = await holdfast(['fence', 'prune', 'cli x', '--older-than', '0d', '--url', url])
    expect(none.out).toBe('no mark of resources that begin with cli x is older than 0d\n')
    const pruned = await holdfast(['fence', 'prune', 'cli', '--older-than', '0', '--url', url, '--json'])
    expect(JSON.parse(pruned.out)).toEqual({ pruned: 2 })
    expect(await marks.list('cli')).toEqual([])
    await close()
  })

  test('of a shared name are listed by slot, and pruned with it', async () => {
    const { url, marks, close } = await places.sqlite()
    await marks.raise('shared', { epoch: 0, token: 7n, limit: 3, slots: [0, 2] })
    await marks.raise('shared', { epoch: 0, token: 8n, limit: 2 ** 31 - 1, slots: [17] })
    const { out } = await holdfast(['fence', 'ls', 'shared', '--url', url])
    const rows = [
      /^RESOURCE {2}SLOT {2}EPOCH/,
      /^shared {14}0 {6}0 /,
      /shared {7}0 {6}0 {6}7 /,
      /2 {6}0 {6}7 /,
      /r1 {6}0 {6}8 /,
    ]
    expect(out.trimEnd().split('\n')).toEqual(rows.map(row => expect.stringMatching(row)))
    const pruned = await holdfast(['fence', 'prune', 'shared', '--older-than', '0d', '--url', url, '--json'])
    expect(JSON.parse(pruned.out)).toEqual({ pruned: 4 })
    await close()
  })
})

test('invalid arguments are refused', async () => {
  for (const [args, says] of [
    [['--json'], /fence needs a command: sql, ls, advance, prune/],
    [['advanse'], /did you mean advance\?/],
    [['ls'], /--url is missing/],
    [['ls', '--url', 'etcd://x'], /a URL of etcd: has no marks: expected .*mysql:\/\/host\/database/],
    [['ls', '--url', 's3://bucket/key'], /marks of objects are in the objects, .*holdfast\/fencing\/objects/],
    [['ls', '--url', 'https://files/key'], /marks of objects are in the objects/],
    [
      ['ls', '--url', 'file://srv/exports'],
      /file:\/\/srv\/exports is not a folder of this machine, such as file:\/\/\/srv/,
    ],
    [['ls', '--url', 'file:'], /needs the path/],
    [['ls', '--url', 'file:missing'], /can see no marks at "missing"/],
    [['ls', '--url', 'sqlite:missing.db'], /the file "missing.db" does not exist/],
    [['advance', '--url', 'sqlite:missing.db'], /RESOURCE is missing/],
    [['prune', '--url', 'sqlite:missing.db'], /--older-than is missing or wrong/],
    [['prune', '--older-than', '90', '--url', 'sqlite:missing.db'], /--older-than is missing or wrong/],
    [['prune', '--older-than', '0d', '--url', 'sqlite:missing.db'], /would remove every mark/],
    [['prune', '--older-than', '0', '--url', 'sqlite:missing.db'], /would remove every mark/],
    [['sql', '--column', 'version'], /--epoch need --table/],
    [['sql', '--table', 'a', '--resource', 'a', '--epoch', 'one'], /--epoch needs --resource, and is a number/],
    [['sql', '--table', 'a', '--epoch', '5'], /--epoch needs --resource/],
    [
      ['sql', '--url', 'redis://x'],
      /only marks at URLs of sqlite: postgres: postgresql: mysql: mariadb: need SQL: elsewhere/,
    ],
    [['sql', '--table', 'a', '--url', 'sqlite:x'], /SQLite has neither row triggers nor a check of leases/],
    [['sql', '--leases', '--url', 'sqlite:x'], /SQLite has neither row triggers nor a check of leases/],
    [['sql', '--leases', '--table', 'a'], /--leases and --table exclude each other/],
  ] as const) {
    const { code, err } = await holdfast(['fence', ...args])
    expect({ code, err }).toEqual({ code: 64, err: expect.stringMatching(says) })
  }
})

test('missing marks and a missing server are reported', async () => {
  const missing = await holdfast(['fence', 'ls', '--url', `${server.url()}?table=none`])
  expect(missing).toMatchObject({
    code: 78,
    err: expect.stringMatching(/"none" or its function is missing: .*fence sql/),
  })
  const gone = await holdfast(['fence', 'ls', '--url', 'postgres://u:secret@127.0.0.1:1/x'])
  expect(gone.code).toBe(69)
  expect(gone.err).not.toContain('secret')
})

test('a hanging server is not waited for for ever', async () => {
  const own = await startPostgres()
  await own.pause()
  const { code, err } = await holdfast(['fence', 'ls', '--url', own.url()])
  expect({ code, err }).toEqual({ code: 69, err: expect.stringMatching(/did not answer within 5000 ms/) })
  await own.stop()
})
