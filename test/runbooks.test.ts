/** What docs/operations/runbooks.md tells an operator to do, in the same order. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, expect, test } from 'vitest'
import { findBinary } from '../lab/servers/binary.ts'
import { startEtcd } from '../lab/servers/etcd.ts'
import { startPostgres } from '../lab/servers/postgres.ts'
import { type RedisServer, startRedis } from '../lab/servers/redis.ts'
import { until } from '../lab/servers/until.ts'
import { sqliteFence } from '../src/fencing/sqlite/index.ts'
import { connect, type Lease, type Locks } from '../src/index.ts'
import { Stack } from './harnesses/stack.ts'

const stack = new Stack()
afterEach(() => stack.end())

async function locksAt(url: string): Promise<Locks> {
  return stack.adopt(await connect(url, { ttl: 2_000, timeout: 20_000 }), locks => locks.close({ release: true }))
}

async function lost({ signal }: Lease): Promise<unknown> {
  if (!signal.aborted) await once(signal, 'abort')
  return signal.reason
}

test('Redis lost its data: holders are notified, and the next token is higher', async () => {
  const server = stack.use(await startRedis())
  const locks = await locksAt(server.url)
  const lease = await locks.acquire('job')
  await server.call('FLUSHALL')
  expect(await lost(lease)).toMatchObject({ code: 'LEASE_LOST' })
  expect((await locks.acquire('job')).token).toBeGreaterThan(lease.token)
})

test('PostgreSQL was restored: later leases are lost, earlier ones end, and the next token is higher', async () => {
  const server = stack.use(await startPostgres())
  const locks = await locksAt(`${server.url()}?create=true`)
  const before = await locks.acquire('before', { heartbeat: false })
  const backup = execFileSync(
    findBinary('pg_dump', 'postgresql-client').path,
    ['--clean', '--schema=holdfast', server.url()],
    { encoding: 'utf8' },
  )
  const after = await locks.acquire('after')
  execFileSync(findBinary('psql', 'postgresql-client').path, ['--quiet', '--set=ON_ERROR_STOP=1', server.url()], {
    input: backup,
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  expect(await lost(after)).toMatchObject({ code: 'LEASE_LOST' })
  for (const { name, token } of [before, after]) expect((await locks.acquire(name)).token).toBeGreaterThan(token)
})

test('a Redlock node was replaced: leases survive, and the new node votes after maxTtl', async () => {
  const [a, b, c, d] = (await Promise.all([1, 2, 3, 4].map(async () => stack.use(await startRedis())))) as [
    RedisServer,
    RedisServer,
    RedisServer,
    RedisServer,
  ]
  const urlOf = (servers: readonly RedisServer[]): string =>
    `redlock://${servers.map(({ host, port }) => `${host}:${port}`).join(',')}?maxTtl=3000&nodeTimeout=1000`
  const states = async (locks: Locks): Promise<string[] | undefined> =>
    (await locks.inspect('job')).nodes?.map(({ state }) => state)
  const serve = async (locks: Locks): Promise<unknown> =>
    until('all nodes serve', async () => (await states(locks))?.every(state => state === 'serving'), { limit: 20_000 })

  const older = await locksAt(urlOf([a, b, c]))
  await serve(older)
  const lease = await older.acquire('job')
  await c.stop()
  const newer = await locksAt(urlOf([a, b, d]))
  expect(await newer.tryAcquire('job')).toBeUndefined()
  await serve(newer)
  expect(await newer.tryAcquire('job')).toBeUndefined()
  lease.assertHeld()
  await lease.release()
  expect((await newer.acquire('job')).token).toBeGreaterThan(lease.token)
})

test('a store was moved: the next epoch accepts the lower tokens, and refuses the old ones', async () => {
  const [from, to] = [stack.use(await startRedis()), stack.use(await startEtcd())]
  const database = stack.adopt(new DatabaseSync(':memory:'), ledger => ledger.close())
  const fence = sqliteFence(database)
  fence.install()
  const older = await (await locksAt(from.url)).acquire('job')
  fence.transaction(older, () => {})
  const newer = await (await locksAt(`etcd://127.0.0.1:${to.port}`)).acquire('job')
  expect(() => fence.transaction(newer, () => {})).toThrow(expect.objectContaining({ code: 'STALE_TOKEN' }))

  const epoch = await fence.marks.advance('job')
  sqliteFence(database, { epoch }).transaction(newer, () => {})
  expect(() => fence.transaction(older, () => {})).toThrow(expect.objectContaining({ code: 'STALE_TOKEN' }))
})
