import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { GlideClusterClient } from '@valkey/valkey-glide'
import { Cluster, Redis } from 'ioredis'
import { Cluster as ValkeyCluster } from 'iovalkey'
import { createClient, createCluster } from 'redis'
import { createCluster as createCluster4 } from 'redis4'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type RedisCluster, startCluster } from '../../../../lab/servers/cluster.ts'
import { startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import { createLocks } from '../../../index.ts'
import type { RedisClient } from '../index.ts'
import { slotOf } from '../keys.ts'
import { claimOf, failureOf, hold, host, look, signal, storeOf } from './support.ts'

let cluster: RedisCluster

beforeAll(async () => {
  cluster = await startCluster()
})
afterAll(() => cluster.stop())
beforeEach(async () => {
  for (const node of cluster.nodes) await node.call('FLUSHALL')
})

interface Owned {
  readonly client: RedisClient
  close(): void
}

const clients: Record<string, () => Promise<Owned>> = {
  async ioredis() {
    const client = new Cluster(
      cluster.nodes.map(({ port }) => ({ host, port })),
      { lazyConnect: true },
    )
    return { client, close: () => client.disconnect() }
  },
  async iovalkey() {
    const client = new ValkeyCluster(
      cluster.nodes.map(({ port }) => ({ host, port })),
      { lazyConnect: true },
    )
    return { client, close: () => client.disconnect() }
  },
  'node-redis': async () => {
    const client = createCluster({ rootNodes: cluster.nodes.map(({ port }) => ({ socket: { host, port } })) })
    return { client, close: () => {} }
  },
  'node-redis4': async () => {
    const client = createCluster4({ rootNodes: cluster.nodes.map(({ port }) => ({ socket: { host, port } })) })
    return { client, close: () => {} }
  },
  async glide() {
    const client = await GlideClusterClient.createClient({
      addresses: cluster.nodes.map(({ port }) => ({ host, port })),
    })
    return { client, close: () => client.close() }
  },
}

const names = ['a', 'b', 'c', 'd', 'a:b', '{a}', '{', '}', '}{', '{}', 'a}b', ' ', '{b}c', '🔒']

describe.each(Object.entries(clients))('%s', (_, create) => {
  test('holds names on every node, each with all of its keys on one', async () => {
    const { client, close } = await create()
    const store = storeOf(client)
    const claims = names.map(each => claimOf(each))
    await Promise.all(claims.map(claim => hold(store, claim)))
    const waiting = names.map(each => claimOf(each, { queue: true }))
    for (const answer of await Promise.all(waiting.map(claim => store.acquire(claim, signal))))
      expect(answer).toMatchObject({ held: false, ahead: 0 })
    const found = await look(store, { prefix: '' })
    expect(found.filter(({ state }) => state === 'held').map(record => record.name)).toEqual([...names].sort())
    expect(found).toHaveLength(2 * names.length)
    await Promise.all(claims.map(claim => store.release(claim, signal)))
    await Promise.all(waiting.map(claim => hold(store, claim)))
    for (const claim of waiting) expect(await store.renew(claim, signal)).toMatchObject({ held: true })
    await store[Symbol.asyncDispose]()
    close()
  })

  test('wakes a waiter, whichever node has the name', async () => {
    const { client, close } = await create()
    const [one, two] = [createLocks(storeOf(client)), createLocks(storeOf(client))]
    for (const each of names.slice(0, 5)) {
      const lease = await one.acquire(each)
      const waiting = two.acquire(each)
      await until('it waits', async () => (await one.inspect(each)).waiters.length === 1)
      await lease.release()
      await (await waiting).release()
    }
    await one.close()
    await two.close()
    close()
  })

  test('serves the names of the other nodes while one is dead, and its own when it is back', async () => {
    const { client, close } = await create()
    const store = storeOf(client)
    const dead = await cluster.nodeOf('holdfast:{:a}')
    const others = await Promise.all(
      names.map(async each => [each, (await cluster.nodeOf(`holdfast:{:${each}}`)) !== dead] as const),
    )
    const alive = others.find(([, isOther]) => isOther)?.[0] ?? ''
    await hold(store, claimOf('a'))
    await hold(store, claimOf(alive))
    // Else the cluster stops serving altogether.
    for (const node of cluster.nodes) await node.call('CONFIG', 'SET', 'cluster-require-full-coverage', 'no')
    await dead.kill()
    expect(await failureOf(hold(store, claimOf('a')))).toMatchObject({ retryable: true })
    const claim = claimOf(alive, { queue: true })
    await until('the others are served', () => store.acquire(claim, signal).catch(() => undefined))
    expect(await store.acquire(claim, signal)).toMatchObject({ held: false })
    await dead.start()
    await cluster.agreed()
    await until('its own are served', () => hold(store, claimOf('a')).catch(() => undefined))
    await store[Symbol.asyncDispose]()
    close()
  })
})

test('computes the slots as Redis does', async () => {
  const [node] = cluster.nodes
  for (const key of [
    '',
    'a',
    '123456789',
    '{a}b',
    'a{b}c{d}',
    '{}a',
    'a{',
    'ü{ö}',
    ...names.map(each => `x:{:${each}}:y`),
  ])
    expect([key, slotOf(key)]).toEqual([key, await node?.call('CLUSTER', 'KEYSLOT', key)])
})

test('says that a cluster needs a cluster client', async () => {
  const port = cluster.nodes[0]?.port as number
  for (const client of [new Redis({ port, lazyConnect: true }), createClient({ socket: { host, port } })]) {
    await using store = storeOf(client)
    const outcomes = await Promise.allSettled(names.map(each => hold(store, claimOf(each))))
    const failed = outcomes.filter(outcome => outcome.status === 'rejected').map(outcome => outcome.reason)
    expect(failed.length).toBeGreaterThan(0)
    for (const error of failed) {
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', retryable: false })
      expect(error.message).toMatch('the server is part of a Redis Cluster: pass a cluster client')
    }
  }
})

test('says that a single server needs a client for a single server', async () => {
  const server = await startRedis()
  try {
    for (const client of [
      new Cluster([{ host, port: server.port }], { lazyConnect: true }),
      new ValkeyCluster([{ host, port: server.port }], { lazyConnect: true }),
      createCluster({ rootNodes: [{ socket: { host, port: server.port } }] }),
      createCluster4({ rootNodes: [{ socket: { host, port: server.port } }] }),
    ]) {
      await using locks = createLocks(storeOf(client))
      expect((await failureOf(locks.acquire('a', { wait: 0 }))).message).toMatch(/no Redis Cluster.* a single server/)
    }
  } finally {
    await server.stop()
  }
})

test('does everything with the permissions that the documentation lists for a cluster', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../../../docs/stores/redis.md'), 'utf8')
  const least = /^(~holdfast:\S+ .*)$/m.exec(page)?.[1] ?? ''
  const [username, password] = ['least', 'secret']
  for (const node of cluster.nodes)
    await node.call('ACL', 'SETUSER', username, 'on', `>${password}`, ...least.split(' '), '+cluster|slots')
  const nodes = cluster.nodes.map(({ port }) => ({ host, port }))
  for (const client of [
    new Cluster(nodes, { lazyConnect: true, redisOptions: { username, password } }),
    createCluster({ rootNodes: nodes.map(socket => ({ socket })), defaults: { username, password } }),
    createCluster4({ rootNodes: nodes.map(socket => ({ socket })), defaults: { username, password } }),
  ]) {
    await using store = storeOf(client)
    const claims = names.map(each => claimOf(each))
    await Promise.all(claims.map(claim => hold(store, claim)))
    const waiting = claimOf('a', { queue: true })
    expect(await store.acquire(waiting, signal)).toMatchObject({ held: false, ahead: 0 })
    let woken = false
    await store.watch?.(waiting, () => (woken = true), signal)
    expect(await look(store, { prefix: '' })).toHaveLength(names.length + 1)
    await Promise.all(claims.map(claim => store.release(claim, signal)))
    await until('the waiter is woken', () => woken)
    expect(await store.release(waiting, signal)).toBe('released')
  }
})
