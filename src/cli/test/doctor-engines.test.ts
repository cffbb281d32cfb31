import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type EtcdServer, startEtcd } from '../../../lab/servers/etcd.ts'
import { type MariaDbServer, startMariaDb } from '../../../lab/servers/mariadb.ts'
import { startProxy } from '../../../lab/servers/proxy.ts'
import { type RedisServer, startRedis } from '../../../lab/servers/redis.ts'
import { startZooKeeper, type ZooKeeperServer } from '../../../lab/servers/zookeeper.ts'
import { createLocks, migrate } from '../../index.ts'
import type { Connection } from '../../stores/zookeeper/connection.ts'
import { zookeeper } from '../../stores/zookeeper/index.ts'
import { connectionTo, setAcl } from '../../stores/zookeeper/test/support.ts'
import { doctor, finding } from './doctor.ts'

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
    expect(await finding(url([a, b, 1]), 'redlock-servers')).toBe(
      'warning: 127.0.0.1:1 could not be compared with the other servers',
    )
  })

  test('finds each server that is down, also if it is the majority', async () => {
    const [a = 0] = servers.map(({ port }) => port)
    expect((await doctor(url([a, 1, 2]))).levels).toMatchObject({
      ...{ lease: 'problem', 'redlock-server': 'problem', 'redlock-quarantine': 'problem', 'redis-role': 'ok' },
    })
  })

  test('says which servers it could not compare, because INFO was refused', async () => {
    await using server = await startRedis({ users: ['app on >secret ~* &* +@all -info'] })
    const [a = 0, b = 0] = servers.map(({ port }) => port)
    const login = `redlock://127.0.0.1:${a},127.0.0.1:${b},app:secret@127.0.0.1:${server.port}?trustRestarted=true&nodeTimeout=1000`
    expect(await finding(login, 'redlock-servers')).toBe(
      `warning: 127.0.0.1:${server.port} could not be compared with the other servers`,
    )
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

  /** The server, as clients without a user know it, or those of a user. */
  const url = (chroot: string, login = ''): string => `zookeeper://${login}${server.host}:${server.port}${chroot}`

  /** Makes these names, with or without a user. They stay for a while. */
  async function made(chroot: string, names: readonly string[], auth?: { user: string; password: string }) {
    const servers = `${server.host}:${server.port}`
    await using locks = createLocks(zookeeper({ servers, chroot, auth }))
    for (const name of names) await (await locks.acquire(name)).release()
  }

  /** A connection of a user. */
  async function asUser(auth: { user: string; password: string }, act: (connection: Connection) => Promise<unknown>) {
    const connection = await connectionTo(server, auth)
    await act(connection)
    connection.end(new Error('done'))
  }

  test('finds names that others may change, until they belong to the user', async () => {
    const auth = { user: 'app', password: 'secret' }
    const acl = (): Promise<string | undefined> => finding(url('/mixed', 'app:secret@'), 'zookeeper-acl')
    await made('/mixed', ['a', 'b', 'c'])
    expect(await acl()).toBe('problem: others may change 4 nodes, such as /mixed/holdfast')
    await asUser(auth, async connection => {
      for (const path of ['', '/a', '/b']) await connection.send(setAcl(`/mixed/holdfast${path}`, 'auth'))
    })
    expect(await acl()).toBe('problem: others may change /mixed/holdfast/c')
    expect((await doctor(url('/mixed', 'app:secret@'))).levels, 'its own name is no problem').toMatchObject({
      lease: 'ok',
    })
    await asUser(auth, connection => connection.send(setAcl('/mixed/holdfast/c', 'auth')))
    expect(await acl()).toBe('ok: only the user of the URL can change leases')
  })

  test('finds names of another user, and of this one with another password', async () => {
    const auth = { user: 'app', password: 'secret' }
    await made('/owned', ['a'])
    await asUser(auth, connection => connection.send(setAcl('/owned/holdfast/a', 'auth')))
    const of = (login?: string): Promise<string | undefined> => finding(url('/owned', login), 'zookeeper-acl')
    expect(await of()).toBe('problem: a client without a user may not change /owned/holdfast/a')
    expect(await of('app:other@')).toBe('problem: this user may not change /owned/holdfast/a')
    await asUser(auth, connection => connection.send(setAcl('/owned/holdfast', 'auth')))
    expect(await of('bob:secret@')).toBe('problem: this user may not change /owned/holdfast')
    expect((await doctor(url('/owned', 'app:other@'))).levels).toMatchObject({ lease: 'problem' })
  })

  test('finds limits of sessions that do not fit the default ttl', async () => {
    for (const config of [{ maxSessionTimeout: 4_000 }, { tickTime: 6_000, minSessionTimeout: 12_000 }]) {
      await using limited = await startZooKeeper({ config })
      const { levels } = await doctor(`zookeeper://${limited.host}:${limited.port}`)
      expect(levels).toMatchObject({ 'zookeeper-sessions': 'warning' })
    }
  })

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

  test('finds tables of another format', async () => {
    const url = `${server.url()}?table=newer`
    await migrate(url)
    await server.query("alter table newer comment = 'Holdfast leases, format 999'")
    expect(await doctor(url)).toMatchObject({ code: 2, levels: { 'mysql-schema': 'problem' } })
  })

  test('finds a server that forgets commits, and one that is read-only', async () => {
    await server.query('set global innodb_flush_log_at_trx_commit = 2')
    expect((await doctor(server.url())).levels).toMatchObject({ lease: 'problem', 'mysql-durability': 'problem' })
    await server.query('set global innodb_flush_log_at_trx_commit = 1')
    await server.query('set global read_only = 1')
    expect((await doctor(server.url())).levels).toMatchObject({ 'mysql-role': 'problem' })
  })
})
