import { expect, test } from 'vitest'
import { startEtcd } from '../lab/servers/etcd.ts'
import { startMariaDb } from '../lab/servers/mariadb.ts'
import { startPostgres } from '../lab/servers/postgres.ts'
import { startProxy } from '../lab/servers/proxy.ts'
import { startRedis } from '../lab/servers/redis.ts'
import { until } from '../lab/servers/until.ts'
import { startZooKeeper } from '../lab/servers/zookeeper.ts'
import { connect, openStore } from '../src/connect.ts'
import { migrate } from '../src/migrate.ts'
import { claimOf, signal } from './support.ts'

interface Served extends AsyncDisposable {
  readonly host: string
  readonly port: number
}

/** How each server starts, and its URL at a port. */
const engines: Record<string, [() => Promise<Served>, (server: never, port: number) => string]> = {
  redis: [startRedis, (_, port) => `redis://127.0.0.1:${port}`],
  postgres: [startPostgres, (server: Awaited<ReturnType<typeof startPostgres>>, port) => server.urlBy(port)],
  mysql: [startMariaDb, (server: Awaited<ReturnType<typeof startMariaDb>>, port) => server.urlBy(port)],
  etcd: [startEtcd, (_, port) => `etcd://127.0.0.1:${port}`],
  zookeeper: [startZooKeeper, (_, port) => `zookeeper://127.0.0.1:${port}`],
}

test.each(Object.keys(engines))(
  '%s: a try, and a wait of 3 s, succeeds although its idle connection was cut silently',
  async engine => {
    const [start, urlAt] = engines[engine] as (typeof engines)[string]
    await using server = await start()
    const proxy = await startProxy(server)
    if (engine === 'postgres' || engine === 'mysql') await migrate(urlAt(server as never, server.port))
    for (const [ttl, wait] of [
      [5_400, 0],
      [30_000, 0],
      [30_000, 3_000],
    ] as const) {
      const url = urlAt(server as never, proxy.port)
      const locks = await connect(url, { ttl })
      await locks.using('a', async () => {})
      for (const pipe of [...proxy.up.pipes, ...proxy.down.pipes]) pipe.deafen()
      const lease = await locks.acquire('a', { wait })
      await lease.release()
      await locks.close()
    }
    await proxy.stop()
  },
  60_000,
)

test.each(Object.keys(engines))(
  '%s: a release frees the name although the connection of its lease was cut silently',
  async engine => {
    const [start, urlAt] = engines[engine] as (typeof engines)[string]
    await using server = await start()
    const proxy = await startProxy(server)
    if (engine === 'postgres' || engine === 'mysql') await migrate(urlAt(server as never, server.port))
    await using other = await connect(urlAt(server as never, server.port))
    const locks = await connect(urlAt(server as never, proxy.port), { ttl: 30_000 })
    const lease = await locks.acquire('a')
    for (const pipe of [...proxy.up.pipes, ...proxy.down.pipes]) pipe.deafen()
    await lease.release()
    expect(await other.acquire('a', { wait: 5_000 })).toBeDefined()
    await locks.close()
    await proxy.stop()
  },
  60_000,
)

test.each(Object.keys(engines))(
  '%s: names are listed again although the connection was cut silently, and nothing else is asked',
  async engine => {
    const [start, urlAt] = engines[engine] as (typeof engines)[string]
    await using server = await start()
    const proxy = await startProxy(server)
    if (engine === 'postgres' || engine === 'mysql') await migrate(urlAt(server as never, server.port))
    const locks = await connect(urlAt(server as never, proxy.port))
    await using lease = await locks.acquire('a', { heartbeat: false })
    const list = async (): Promise<string[]> => (await Array.fromAsync(locks.list())).map(({ name }) => name)
    expect(await list()).toEqual(['a'])
    for (const pipe of [...proxy.up.pipes, ...proxy.down.pipes]) pipe.deafen()
    expect(await until('they are listed', () => list().catch(() => undefined))).toEqual(['a'])
    await lease.release()
    await locks.close()
    await proxy.stop()
  },
  60_000,
)

test.each(Object.keys(engines))(
  'R13 (%s): a break that was given up while the store connected ends no lease, and an acquire leaves no waiter',
  async engine => {
    const [start, urlAt] = engines[engine] as (typeof engines)[string]
    await using server = await start()
    const proxy = await startProxy(server)
    if (engine === 'postgres' || engine === 'mysql') await migrate(urlAt(server as never, server.port))
    await using holder = await connect(urlAt(server as never, server.port))
    await using lease = await holder.acquire('a')
    await using store = await openStore(urlAt(server as never, proxy.port))
    proxy.up.hold()
    const caller = new AbortController()
    const given = [
      store.break?.('a', { by: 'test' }, caller.signal),
      store.acquire(claimOf('a', { queue: true }), caller.signal),
    ]
    await until('it connects', () => proxy.accepted > 0)
    caller.abort(new Error('given up'))
    proxy.up.pass()
    await Promise.allSettled(given)
    await until('it is connected', () => Array.fromAsync(store.inspect({ name: 'a' }, signal)).catch(() => undefined))
    await lease.extend()
    expect((await holder.inspect('a')).waiters).toEqual([])
    await proxy.stop()
  },
  60_000,
)
