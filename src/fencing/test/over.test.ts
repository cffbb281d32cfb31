import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Redis } from 'ioredis'
import { Client, Pool } from 'pg'
import postgresJs from 'postgres'
import { describe, expect, onTestFinished, test } from 'vitest'
import { newFolder } from '../../../lab/servers/folder.ts'
import { startPostgres } from '../../../lab/servers/postgres.ts'
import { startRedis } from '../../../lab/servers/redis.ts'
import { failureOf } from '../../../test/support.ts'
import { createLocks, type Lease, LeaseError } from '../../index.ts'
import { memory } from '../../stores/memory/index.ts'
import { testLocks } from '../../testing/index.ts'
import { fileFence } from '../files/index.ts'
import { fenceHeaders } from '../http/index.ts'
import { type Objects, objectFence } from '../objects/index.ts'
import { type PostgresFence, postgresFence } from '../postgres/index.ts'
import { redisFence } from '../redis/index.ts'
import { sqliteFence } from '../sqlite/index.ts'

type Overs = [how: string, over: (lease: Lease) => Promise<unknown>, code: string]

const locks = testLocks()

/** How this process may know that a lease is over. */
const overs: Overs[] = [
  ['released', lease => lease.release(), 'CLOSED'],
  ['lost', () => locks.lose('ledger'), 'LEASE_LOST'],
  ['expired', () => locks.advance(2_000), 'LEASE_LOST'],
]

function acquire(): Promise<Lease> {
  return locks.acquire('ledger', { heartbeat: false, ttl: 1_000 })
}

describe.each(overs)('F2: a lease that is %s', (_, end, code) => {
  test('is refused by the fence of SQLite, and nothing is written', async () => {
    const database = new DatabaseSync(':memory:')
    const fence = sqliteFence(database)
    fence.install()
    const lease = await acquire()
    await end(lease)
    const refusal = expect.objectContaining({ code })
    expect(() => fence.transaction(lease, () => 'work')).toThrow(refusal)
    expect(() => fence.touch(lease)).toThrow(refusal)
    expect(await fence.marks.list()).toEqual([])
    const { name, token } = lease
    expect(fence.transaction({ name, token }, () => 'work')).toBe('work') // as from another process
  })

  test('is refused for headers, and for an object before it is read', async () => {
    const lease = await acquire()
    await end(lease)
    expect(() => fenceHeaders(lease)).toThrow(expect.objectContaining({ code }))
    const objects = {} as Objects
    expect(await failureOf(objectFence(objects).put(lease, 'key', 'x'))).toMatchObject({ code })
    expect(await failureOf(objectFence(objects).touch(lease, 'key'))).toMatchObject({ code })
  })

  test('between read and write of an object is refused before the write', async () => {
    const lease = await acquire()
    const objects: Objects = {
      async read() {
        await end(lease)
        return undefined
      },
      write: () => expect.unreachable(),
    }
    expect(await failureOf(objectFence(objects).put(lease, 'key', 'x'))).toMatchObject({ code })
  })

  test('after an unanswered write of an object leaves the outcome unknown', async () => {
    const lease = await acquire()
    const objects: Objects = {
      read: async () => undefined,
      async write() {
        await end(lease)
        throw new LeaseError('OUTCOME_UNKNOWN', 'no answer')
      },
    }
    expect(await failureOf(objectFence(objects).put(lease, 'key', 'x'))).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  })

  test('is refused by the fence of files, also between the first byte and the rename', async () => {
    const path = join(newFolder('over'), 'file')
    const lease = await acquire()
    async function* data(): AsyncGenerator<string> {
      yield 'half'
      await end(lease)
    }
    expect(await failureOf(fileFence().write(lease, path, data()))).toMatchObject({ code })
    expect(await failureOf(fileFence().write(lease, path, 'x'))).toMatchObject({ code })
    expect(await failureOf(fileFence().touch(lease, path))).toMatchObject({ code })
    expect(existsSync(path)).toBe(false)
    const { name, token } = lease
    await fileFence().write({ name, token }, path, 'x')
    expect(await readFile(path, 'utf8')).toBe('x')
  })
})

test('F2: a lease that ends in the work of a transaction of SQLite is refused before the commit', async () => {
  const database = new DatabaseSync(':memory:')
  const fence = sqliteFence(database)
  fence.install()
  await using real = createLocks(memory())
  const lease = await real.acquire('ledger', { heartbeat: false, ttl: 30 })
  const until = performance.now() + 40
  const work = (): void => {
    while (performance.now() < until);
  }
  expect(() => fence.transaction(lease, work)).toThrow(expect.objectContaining({ code: 'LEASE_LOST' }))
  expect(await fence.marks.list()).toEqual([])
})

test('F2: a lease that ends in the work of a transaction of PostgreSQL is refused before the commit', async () => {
  await using server = await startPostgres()
  const url = server.url()
  const pool = new Pool({ connectionString: url })
  const client = new Client({ connectionString: url })
  const sql = postgresJs(url)
  await client.connect()
  await postgresFence(pool).install()
  await pool.query('create table entry (id int)')
  const fences = [postgresFence(pool), postgresFence(client), postgresFence(sql)] as PostgresFence<Client>[]
  for (const fence of fences) {
    const lease = await acquire()
    const work = async (transaction: object): Promise<void> => {
      const insert = 'insert into entry values (1)'
      await ('unsafe' in transaction
        ? (transaction as typeof sql).unsafe(insert)
        : (transaction as Client).query(insert))
      await lease.release()
    }
    expect(await failureOf(fence.transaction(lease, work))).toMatchObject({ code: 'CLOSED' })
    expect(await failureOf(fence.transaction(lease, async () => {}))).toMatchObject({ code: 'CLOSED' })
    expect(await failureOf(fence.touch(lease))).toMatchObject({ code: 'CLOSED' })
    expect(() => fence.statement(lease)).toThrow(expect.objectContaining({ code: 'CLOSED' }))
  }
  expect((await pool.query('select from entry')).rowCount).toBe(0)
  await Promise.all([pool.end(), client.end(), sql.end()])
})

test('F2: a lease that is over is refused by the fence of Redis', async () => {
  await using server = await startRedis()
  const client = new Redis(server.port)
  onTestFinished(() => client.disconnect())
  await using fence = redisFence(client)
  const lease = await acquire()
  await lease.release()
  expect(await failureOf(fence.set(lease, 'key', 'value'))).toMatchObject({ code: 'CLOSED' })
  expect(await failureOf(fence.eval(lease, { script: 'return 1', keys: ['key'] }))).toMatchObject({
    code: 'CLOSED',
  })
  expect(await client.keys('*')).toEqual([])
})
