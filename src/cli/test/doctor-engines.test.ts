import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type EtcdServer, startEtcd } from '../../../lab/servers/etcd.ts'
import { type MariaDbServer, startMariaDb } from '../../../lab/servers/mariadb.ts'
import { startProxy } from '../../../lab/servers/proxy.ts'
import { type RedisServer, startRedis } from '../../../lab/servers/redis.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../../lab/servers/zookeeper.ts'
import { migrate } from '../../index.ts'
import { doctor } from './doctor.ts'

describe('holdfast doctor over Redlock', () => {
  let servers: RedisServer[]
  const url = (ports: readonly number[], query = 'trustRestarted=true&nodeTimeout=1000'): string =>
    `redlock://${ports.map(port => `127.0.0.1:${port}`).join(',')}?${query}`

  beforeAll(async () => {
    servers = await Promise.all([
      startRedis(),
      startRedis(),
      startRedis({ maxmemoryPolicy: 'allkeys-lru', config: { maxmemory: '100mb' } }),
    ])
  })

  afterAll(async () => {
    await Promise.all(servers.map(server => server.stop()))
  })

  test('finds what a server of its own has, a server named twice, and one that is down', async () => {
    const [a = 0, b = 0, evicting = 0] = servers.map(({ port }) => port)
    const sound = await doctor(url([a, b, evicting]))
    expect(sound).toMatchObject({ code: 2, levels: { lease: 'ok', 'redis-eviction': 'problem' } })
    expect(sound.levels).toMatchObject({ 'redlock-servers': 'ok', 'redlock-quarantine': 'ok' })
    expect(sound.levels).not.toHaveProperty('redis-persistence')
    const twice = `redlock://127.0.0.1:${a},localhost:${a},127.0.0.1:${b}?trustRestarted=true&nodeTimeout=1000`
    expect((await doctor(twice)).levels).toMatchObject({ 'redlock-servers': 'problem' })
    const down = await doctor(url([a, b, 1]))
    expect(down.levels).toMatchObject({ lease: 'ok', 'redlock-server': 'problem', 'redlock-quarantine': 'warning' })
  })

  test('finds servers that were just started', async () => {
    const found = await doctor(
      url(
        servers.map(({ port }) => port),
        'maxTtl=60000&nodeTimeout=1000',
      ),
    )
    expect(found.levels).toMatchObject({ lease: 'problem', 'redlock-quarantine': 'warning' })
  })

  test('a slow round trip is a warning', async () => {
    const [server] = servers as [RedisServer]
    await using proxy = await startProxy(server)
    proxy.down.delay(120)
    expect((await doctor(`redis://127.0.0.1:${proxy.port}`)).levels).toMatchObject({ lease: 'warning' })
  })
})

describe('holdfast doctor over etcd', () => {
  let server: EtcdServer

  beforeAll(async () => {
    server = await startEtcd()
  })

  afterAll(() => server.stop())

  test('finds nothing, then a server that is down, and then an alarm', async () => {
    const url = `etcd://${server.host}:${server.port}`
    const levels = { lease: 'ok', servers: 'ok', tls: 'ok', version: 'ok', 'etcd-alarm': 'ok' }
    expect(await doctor(url)).toEqual({ code: 0, levels })
    expect(await doctor(`${url},${server.host}:1`)).toEqual({ code: 1, levels: { ...levels, servers: 'warning' } })
    const body = JSON.stringify({ action: 'ACTIVATE', alarm: 'NOSPACE' })
    await fetch(`http://${server.host}:${server.port}/v3/maintenance/alarm`, { method: 'POST', body })
    expect(await doctor(url)).toMatchObject({ code: 2, levels: { lease: 'problem', 'etcd-alarm': 'problem' } })
  })
})

describe('holdfast doctor over ZooKeeper', () => {
  let server: ZooKeeperServer

  beforeAll(async () => {
    server = await startZooKeeper()
  })

  afterAll(() => server.stop())

  test('finds the version, the limits of sessions and who may change leases', async () => {
    const { levels } = await doctor(`zookeeper://${server.host}:${server.port}`)
    expect(levels).toMatchObject({ lease: 'ok', tls: 'ok', version: 'ok', 'zookeeper-acl': 'ok' })
    expect(levels).toMatchObject({ servers: 'ok', 'zookeeper-sessions': 'ok' })
    const down = await doctor(`zookeeper://${server.host}:${server.port},${server.host}:1`)
    expect(down.levels).toMatchObject({ lease: 'ok', servers: 'warning' })
  })
})

describe('holdfast doctor over MariaDB', () => {
  let server: MariaDbServer

  beforeAll(async () => {
    server = await startMariaDb()
  })

  afterAll(() => server.stop())

  test('finds missing tables, and then nothing', async () => {
    expect((await doctor(server.url())).levels).toMatchObject({ lease: 'problem', 'mysql-schema': 'problem' })
    await migrate(server.url())
    expect(await doctor(server.url())).toEqual({
      code: 0,
      levels: {
        ...{ lease: 'ok', tls: 'ok', clock: 'ok', version: 'ok', 'mysql-role': 'ok' },
        ...{ 'mysql-durability': 'ok', 'mysql-schema': 'ok' },
      },
    })
  })

  test('finds a server that forgets commits, and one that is read-only', async () => {
    await server.query('set global innodb_flush_log_at_trx_commit = 2')
    expect((await doctor(server.url())).levels).toMatchObject({ lease: 'problem', 'mysql-durability': 'problem' })
    await server.query('set global innodb_flush_log_at_trx_commit = 1')
    await server.query('set global read_only = 1')
    expect((await doctor(server.url())).levels).toMatchObject({ 'mysql-role': 'problem' })
  })
})
