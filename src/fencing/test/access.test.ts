import { Cluster, Redis } from 'ioredis'
import { Pool } from 'pg'
import { expect, test } from 'vitest'
import { startCluster } from '../../../lab/servers/cluster.ts'
import { startPgBouncer } from '../../../lab/servers/pgbouncer.ts'
import { startPostgres } from '../../../lab/servers/postgres.ts'
import { startRedis } from '../../../lab/servers/redis.ts'
import { until } from '../../../lab/servers/until.ts'
import { createLocks } from '../../index.ts'
import { postgres } from '../../stores/postgres/index.ts'
import { postgresFence } from '../postgres/index.ts'
import { redisFence } from '../redis/index.ts'
import { holder, stale } from './support.ts'

test('in a Redis Cluster the mark is in the slot of the keys', async () => {
  const cluster = await startCluster()
  const client = new Cluster(
    cluster.nodes.map(({ host, port }) => ({ host, port })),
    { lazyConnect: true },
  )
  const fence = redisFence(client)
  for (const key of ['a', 'b', 'c', 'd', '{tag}:1']) {
    await fence.set(holder('spread', 7), key, 'kept')
    await expect(fence.set(holder('spread', 6), key, 'lost')).rejects.toEqual(stale(6n, 7n))
  }
  await fence.marks.raise('elsewhere', { epoch: 0, token: 1n })
  const parts = (await fence.marks.list()).map(({ part }) => part)
  expect(parts).toEqual([undefined, 'a', 'b', 'c', 'd', 'tag'])
  expect(await fence.marks.advance('spread')).toBe(1)
  await expect(fence.touch(holder('spread', 8), '{tag}:2')).rejects.toEqual(stale(8n, 0n))
  await fence.close()
  client.disconnect()
  await cluster.stop()
}, 60_000)

test('a user of Redis with the documented permissions can fence, list and prune', async () => {
  const commands = '+eval +evalsha +hgetall +hmget +hset +set +time'
  const users = [
    `writer on >secret ~holdfast:fence:* ~holdfast:mark:* ~app:* ${commands}`,
    `keeper on >secret ~holdfast:fence:* ~holdfast:mark:* ${commands} +scan +hget +hvals +del`,
  ]
  await using server = await startRedis({ users })
  const as = (username: string): Redis =>
    new Redis({ port: server.port, username, password: 'secret', lazyConnect: true })
  await using writer = redisFence(as('writer'))
  await writer.set(holder('app', 7), 'app:1', 'kept')
  await writer.set(holder('app', 7), 'app:1', 'kept')
  await expect(writer.set(holder('app', 6), 'app:1', 'lost')).rejects.toEqual(stale(6n, 7n))
  await writer.marks.raise('api', { epoch: 0, token: 1n })
  await expect(writer.set(holder('app', 7), 'other', 'x')).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  await using keeper = redisFence(as('keeper'))
  expect(await keeper.marks.list()).toHaveLength(2)
  expect(await keeper.marks.advance('app')).toBe(1)
  await until('all are pruned', async () => {
    await keeper.marks.prune(0)
    return (await keeper.marks.list()).length === 0
  })
})

test('through pgbouncer, in transaction mode, twenty transactions share two connections', async () => {
  await using server = await startPostgres()
  await using pooler = await startPgBouncer(server, { size: 2 })
  const pool = new Pool({ connectionString: pooler.url, max: 20 })
  const fence = postgresFence(pool)
  await fence.install()
  await pool.query('create table log (token bigint)')
  const outcomes = await Promise.allSettled(
    Array.from({ length: 20 }, (_, token) =>
      fence.transaction(holder('pooled', token), client => client.query('insert into log values ($1)', [token])),
    ),
  )
  const written = outcomes.filter(({ status }) => status === 'fulfilled').length
  for (const outcome of outcomes)
    if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'STALE_TOKEN' })
  expect((await pool.query('select from log')).rowCount).toBe(written)
  await expect(fence.touch(holder('pooled', 18))).rejects.toEqual(stale(18n, 19n))
  await pool.end()
})

test('a user of PostgreSQL with the documented permissions can fence and prune', async () => {
  await using server = await startPostgres()
  const owner = new Pool({ connectionString: server.url() })
  await createLocks(postgres(owner, { create: true })).using('app', async () => {})
  await postgresFence(owner, { leases: true }).install()
  await owner.query(`create role writer login; grant usage on schema holdfast to writer;
    grant select, insert, update on holdfast.fence to writer; grant select, update on holdfast.lease to writer`)
  const pool = new Pool({ connectionString: server.url('writer') })
  const fence = postgresFence(pool)
  await fence.transaction(holder('app', 7), async () => {})
  await fence.transaction(holder('app', 8), async () => {})
  await fence.transaction(holder('app', 8), async () => {})
  await expect(fence.transaction(holder('app', 7), async () => {})).rejects.toEqual(stale(7n, 8n))
  expect(await fence.marks.advance('app')).toBe(1)
  await expect(fence.marks.prune(0)).rejects.toMatchObject({
    code: 'ACCESS_DENIED',
    message: expect.stringContaining('delete to prune'),
  })
  await owner.query('grant delete on holdfast.fence to writer')
  expect(await fence.marks.prune(0)).toBe(1)
  const late = postgresFence(pool, { leases: true }).touch(holder('app', 9))
  await expect(late).rejects.toMatchObject({ code: expect.stringMatching(/STALE_TOKEN|LEASE_LOST/) })
  await Promise.all([owner.end(), pool.end()])
})
