import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import { claimOf, failureOf, hold, nodesOf } from '../../../../test/support.ts'
import { openStore } from '../../../connect.ts'
import type { Store } from '../../../contract/store.ts'
import { createLocks } from '../../../index.ts'
import { host } from '../../redis/test/support.ts'
import { CAUTIOUS, type Nodes, startNodes, TRUSTED } from './support.ts'

/** What an acquire is refused with once all servers have said who they are. */
async function refusal(store: Store): Promise<{ message: string }> {
  await nodesOf(store)
  const error = await failureOf(hold(store, claimOf('a')))
  expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', retryable: false })
  return error
}

async function withServer(nodes: Nodes, server: RedisServer): Promise<string> {
  return (await refusal(nodes.store(TRUSTED, [...nodes.servers.slice(0, 2), server]))).message
}

test.each([
  ['by two names', '127.0.0.1:ONE,localhost:ONE,127.0.0.1:TWO'],
  ['by an address twice', '127.0.0.1:ONE,127.0.0.1:TWO,127.0.0.1:ONE'],
])('one server %s is no two', async (_, hosts) => {
  await using nodes = await startNodes(2)
  const [first, second] = nodes.servers as [RedisServer, RedisServer]
  const at = hosts.replaceAll('ONE', String(first.port)).replaceAll('TWO', String(second.port))
  await using store = await openStore(`redlock://${at}?trustRestarted=true&nodeTimeout=250`)
  const { message } = await refusal(store)
  const { run_id } = await first.info('server')
  expect(message).toMatch(
    new RegExp(`^\\S+:${first.port}: it is the same server as \\S+:${first.port} \\(run_id ${run_id}\\)`),
  )
})

test('one server behind two ports is refused at the first call, when there is no other', async () => {
  await using nodes = await startNodes(1)
  const store = nodes.store(TRUSTED, [...nodes.servers, ...nodes.proxies])
  await expect(createLocks(store).acquire('a')).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/it is the same server as .*: a majority needs independent servers/),
  })
  expect(await nodes.holders('a')).toEqual([undefined])
})

test('a replica is refused, of one of the servers or of another', async () => {
  await using nodes = await startNodes(3)
  for (const replicaOf of [nodes.servers[0], nodes.servers[2]] as RedisServer[]) {
    await using replica = await startRedis({ replicaOf })
    expect(await withServer(nodes, replica)).toBe(
      `localhost:${replica.port}: it is a replica of ${host}:${replicaOf.port}: a majority needs independent masters`,
    )
  }
})

test('S9: the first call refuses a server that is listed twice, also while all are in quarantine', async () => {
  await using nodes = await startNodes(2)
  const [one, two] = nodes.servers as [RedisServer, RedisServer]
  const [proxy] = nodes.proxies
  proxy?.down.delay(50) // it says who it is when the others have long answered
  const locks = createLocks(nodes.store({ ...CAUTIOUS, maxTtl: 20_000 }, [one, proxy as { port: number }, two]), {
    ttl: 15_000,
  })
  const error = await failureOf(locks.tryAcquire('a'))
  expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(/the same server as/) })
  await locks.close()
})

test('a promoted replica is refused together with its old master or its old siblings', async () => {
  await using nodes = await startNodes(3)
  const [first, second, third] = nodes.servers as [RedisServer, RedisServer, RedisServer]
  await using one = await startRedis({ replicaOf: first })
  await using two = await startRedis({ replicaOf: first })
  for (const replica of [one, two]) await replica.call('REPLICAOF', 'NO', 'ONE')
  expect(await withServer(nodes, one)).toMatch(/^localhost:\d+: it and localhost:\d+ have data copied/)
  const { message } = await refusal(nodes.store(TRUSTED, [one, second, two]))
  expect(message).toMatch(/have data copied /)
  // With neither its master nor a sibling it is a server as any other.
  await using store = nodes.store(TRUSTED, [one, second, third])
  await nodesOf(store)
  await hold(store, claimOf('a'))
})

test('a node of a cluster is refused', async () => {
  await using nodes = await startNodes(2)
  await using node = await startRedis({ config: { 'cluster-enabled': 'yes' } })
  expect(await withServer(nodes, node)).toBe(
    `localhost:${node.port}: it is a node of a Redis Cluster: a majority needs independent servers without replicas that take over`,
  )
})

test('a server that becomes a replica while in use counts as failed, and the others continue to serve', async () => {
  await using nodes = await startNodes(3)
  const [first, , third] = nodes.servers as [RedisServer, RedisServer, RedisServer]
  const locks = createLocks(nodes.store())
  const lease = await locks.acquire('a')
  await nodesOf(locks.store)
  await third.call('REPLICAOF', first.host, first.port)
  await until('it is in step', async () => (await third.info('replication')).master_link_status === 'up')
  const states = async (): Promise<string> => {
    const records = await nodesOf(locks.store)
    return JSON.stringify(records?.map(({ state, reason }) => `${state}: ${reason}`))
  }
  nodes.proxies[2]?.reset()
  await until('it is noticed', async () => /it is a replica of/.test(await states()))
  await lease.extend()
  await (await locks.acquire('b')).release()
  // It now has a copy of the other's data, and has forgotten its own.
  await third.call('REPLICAOF', 'NO', 'ONE')
  for (const proxy of nodes.proxies) proxy.reset()
  await until('it is noticed', async () => /have data copied/.test(await states()))
  await lease.extend()
  await (await locks.acquire('b')).release()
  // Even a restart keeps the history, with what replication left on its disk.
  await third.restart()
  for (const proxy of nodes.proxies) proxy.reset()
  await until('it is noticed', async () => /have data copied/.test(await states()))
  await third.kill()
  rmSync(join(third.folder, 'dump.rdb'))
  await third.start()
  await until('all serve', async () => !/unavailable/.test(await states()))
  await lease.release()
  await locks.close()
})
