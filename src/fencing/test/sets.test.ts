import { setTimeout as sleep } from 'node:timers/promises'
import { Cluster } from 'ioredis'
import { createPool } from 'mysql2/promise'
import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { startCluster } from '../../../lab/servers/cluster.ts'
import { startMariaDb } from '../../../lab/servers/mariadb.ts'
import { startPostgres } from '../../../lab/servers/postgres.ts'
import { failureOf } from '../../../test/support.ts'
import { createLocks } from '../../index.ts'
import { postgres } from '../../stores/postgres/index.ts'
import { testLocks } from '../../testing/index.ts'
import { fenceHeaders } from '../http/index.ts'
import type { Holders } from '../mark.ts'
import { mysqlFence } from '../mysql/index.ts'
import { postgresFence } from '../postgres/index.ts'
import { redisFence } from '../redis/index.ts'
import { type Bank, banks } from './banks.ts'
import { holder, stale } from './support.ts'

/** What a process shows that got the tokens of its leases from another. */
function tokens(of: Readonly<Record<string, number>>): Holders {
  return { leases: Object.entries(of).map(([name, token]) => holder(name, token)) }
}

/** The token of each mark whose resource begins so. */
async function marks(bank: Bank, prefix: string): Promise<Record<string, number>> {
  const records = await bank.marks.list(prefix)
  return Object.fromEntries(records.map(({ resource, token }) => [resource, Number(token)]))
}

describe.each(Object.keys(banks))('%s', name => {
  let bank: Bank
  beforeAll(async () => {
    bank = await (banks[name] as () => Promise<Bank>)()
  })
  afterAll(() => bank.close())

  test('a set raises the mark of each of its names', async () => {
    const before = await bank.entries()
    await bank.add(tokens({ 'all:b': 7, 'all:a': 3 }))
    await bank.add(tokens({ 'all:a': 3, 'all:b': 8 }))
    expect(await marks(bank, 'all:')).toEqual({ 'all:a': 3, 'all:b': 8 })
    expect(await bank.entries()).toBe(before + 2)
    await expect(bank.add(holder('all:b', 7))).rejects.toEqual(stale(7n, 8n))
  })

  test('a set with one older token is refused, and raises no mark', async () => {
    await bank.add(tokens({ 'one:a': 5, 'one:b': 5, 'one:c': 5 }))
    const before = await bank.entries()
    const late = tokens({ 'one:c': 6, 'one:b': 4, 'one:a': 6 })
    await expect(bank.add(late)).rejects.toEqual(stale(4n, 5n))
    await expect(bank.add(late)).rejects.toMatchObject({ message: expect.stringContaining('"one:b" has seen 5') })
    await expect(bank.touch(late)).rejects.toEqual(stale(4n, 5n))
    expect(await marks(bank, 'one:')).toEqual({ 'one:a': 5, 'one:b': 5, 'one:c': 5 })
    expect(await bank.entries()).toBe(before)
  })

  test('touch refuses older holders of each name from then on', async () => {
    await bank.touch(tokens({ 'touch:a': 9, 'touch:b': 9 }))
    for (const resource of ['touch:a', 'touch:b'])
      await expect(bank.add(holder(resource, 8))).rejects.toEqual(stale(8n, 9n))
  })

  test('writers whose names are in opposite order do not wait for each other', async () => {
    const before = await bank.entries()
    const orders = [
      { 'order:a': 1, 'order:b': 1, 'order:c': 1 },
      { 'order:c': 1, 'order:b': 1, 'order:a': 1 },
      { 'order:b': 1, 'order:c': 1 },
    ]
    await Promise.all(Array.from({ length: 30 }, (_, index) => bank.add(tokens(orders[index % 3] ?? {}))))
    expect(await bank.entries()).toBe(before + 30)
  })

  test('a set that is over in this process is refused before anything is sent', async () => {
    const locks = testLocks()
    const set = await locks.all(['over:a', 'over:b']).acquire()
    await bank.add(set)
    const before = await marks(bank, 'over:')
    await locks.lose('over:a')
    expect(await failureOf(bank.add(set))).toMatchObject({ code: 'LEASE_LOST', leaseName: 'over:a' })
    const again = await locks.all(['over:a', 'over:b']).acquire()
    await again.leases[1]?.release()
    expect(await failureOf(bank.add(again))).toMatchObject({ code: 'CLOSED', leaseName: 'over:b' })
    expect(await marks(bank, 'over:')).toEqual(before)
    await locks.close()
  })

  test.runIf(name !== 'redis')('a set that is lost before the commit rolls the transaction back', async () => {
    const locks = testLocks({ maxHold: 1_000 })
    const set = await locks.all(['late:a', 'late:b']).acquire()
    const before = await bank.entries()
    const adding = bank.add(set, () => void locks.block(1_000))
    expect(await failureOf(adding)).toMatchObject({ code: 'MAX_HOLD' })
    expect(await bank.entries()).toBe(name === 'testFence' ? before + 1 : before) // it cannot undo
    expect(await marks(bank, 'late:')).toEqual({})
    await locks.close()
  })

  test.each([
    ['no lease', { leases: [] }, /at least one lease/],
    ['no list', { leases: 'a' }, /at least one lease/],
    ['an invalid token', tokens({ a: -1 }), /the token must be/],
    ['a name twice', { leases: [holder('twice', 1), holder('twice', 2)] }, /a name twice/],
  ])('refuses %s', async (_, set, message) => {
    expect(await failureOf(bank.touch(set as Holders))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(message),
    })
  })
})

test('a fence of one resource refuses a set, and so does one that takes a single lease', async () => {
  const pool = new Pool()
  const set = tokens({ a: 1, b: 1 })
  expect(() => postgresFence(pool, { resource: 'r' }).statement(set)).toThrow(/make a fence without resource/)
  expect(postgresFence(pool, { resource: 'r' }).statement({ leases: [holder('a', 1)] })).toContain("'r'")
  expect(() => fenceHeaders(set as never)).toThrow(/takes one lease, not a set/)
  expect(() => fenceHeaders(Promise.resolve(holder('a', 1)) as never)).toThrow(/a lease, not a promise: await it/)
  await pool.end()
})

test('PostgreSQL checks the rows of all leases before it raises a mark', async () => {
  await using server = await startPostgres()
  const pool = new Pool({ connectionString: server.url() })
  await using _pool = { [Symbol.asyncDispose]: () => pool.end() } // before its server
  await using locks = createLocks(postgres(pool, { create: true }))
  const fence = postgresFence(pool, { leases: true })
  await fence.install()
  const set = await locks.all(['b', 'a']).acquire()
  const leases = set.leases.map(({ name, token }) => ({ name, token })) // which have not ended in this process
  await fence.transaction({ leases }, async () => {})
  await fence.marks.prune(0)
  await set.leases[0]?.release()
  const work = vi.fn<() => Promise<void>>(async () => {})
  expect(await failureOf(fence.transaction({ leases }, work))).toMatchObject({ code: 'LEASE_LOST', leaseName: 'b' })
  expect(work).not.toHaveBeenCalled()
  expect(await fence.marks.list()).toEqual([])
})

test('in Redis Cluster a set is shown in the slot of the keys, and keys of several slots are refused', async () => {
  await using cluster = await startCluster()
  const client = new Cluster(cluster.nodes.map(({ host, port }) => ({ host, port })))
  await using _client = { [Symbol.asyncDispose]: async () => client.disconnect() } // before its servers
  await using fence = redisFence(client)
  const set = tokens({ 'account:1': 5, 'account:2': 5 })
  const script = "redis.call('set', KEYS[1], ARGV[1]); redis.call('set', KEYS[2], ARGV[1]); return 'done'"
  expect(await fence.eval(set, { script, keys: ['{accounts}:1', '{accounts}:2'], args: ['7'] })).toBe('done')
  expect(await client.get('{accounts}:2')).toBe('7')
  for (const late of [holder('account:1', 4), tokens({ 'account:2': 4, 'account:3': 9 })])
    await expect(fence.set(late, '{accounts}:1', '8')).rejects.toEqual(stale(4n, 5n))
  const apart = { script, keys: ['{account:1}', '{account:2}'], args: ['8'] }
  expect(await failureOf(fence.eval(set, apart))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('give them the same hash tag'),
  })
})

/** Begins a transaction that shows `first`; the returned function shows `second` in it, and rolls back. */
type Other = (first: string, token: number) => Promise<(second: string) => Promise<unknown>>

test.each<[string, () => Promise<{ run: Bank['add']; other: Other }>]>([
  [
    'PostgreSQL',
    async () => {
      const server = await startPostgres()
      const pool = new Pool({ connectionString: server.url() })
      onTestFinished(async () => {
        await pool.end()
        await server.stop()
      })
      const fence = postgresFence(pool)
      await fence.install()
      return {
        run: (holders, during = () => {}) => fence.transaction(holders, async () => during()),
        other: async (first, token) => {
          const client = await pool.connect()
          await client.query('begin')
          await fence.check(holder(first, token), client)
          return async second => {
            await fence.check(holder(second, token), client).catch(() => {})
            await client.query('rollback')
            client.release()
          }
        },
      }
    },
  ],
  [
    'MySQL',
    async () => {
      const server = await startMariaDb()
      const pool = createPool({ uri: server.url() })
      onTestFinished(async () => {
        await pool.end()
        await server.stop()
      })
      const fence = mysqlFence(pool)
      await fence.install()
      return {
        run: (holders, during = () => {}) => fence.transaction(holders, async () => during()),
        other: async (first, token) => {
          const connection = await pool.getConnection()
          await connection.beginTransaction()
          // MySQL ends the transaction that has changed less.
          for (let row = 0; row < 20; row += 1) await fence.check(holder(`row:${token}:${row}`, 1), connection)
          await fence.check(holder(first, token), connection)
          return async second => {
            await fence.check(holder(second, token), connection).catch(() => {})
            await connection.rollback()
            connection.release()
          }
        },
      }
    },
  ],
])(
  '%s: after a deadlock with checks in another order, the marks are shown again and the work runs once',
  async (_, open) => {
    const { run, other } = await open()
    await run(tokens({ a: 1, b: 1 }))
    for (let round = 2; round < 5; round += 1) {
      const showSecond = await other('b', round - 1)
      const work = vi.fn<() => void>()
      const running = run(tokens({ a: round, b: round }), work)
      await sleep(300) // it has marked a, and waits for b
      await showSecond('a')
      await running
      expect(work).toHaveBeenCalledOnce()
    }
  },
)
