import { join } from 'node:path'
import type { TestContext } from 'vitest'
import { startEtcd } from '../../../lab/servers/etcd.ts'
import { newFolder } from '../../../lab/servers/folder.ts'
import { startMariaDb } from '../../../lab/servers/mariadb.ts'
import { startPostgres } from '../../../lab/servers/postgres.ts'
import { startRedis } from '../../../lab/servers/redis.ts'
import { startZooKeeper } from '../../../lab/servers/zookeeper.ts'

/** The test that ends. */
export type During = Pick<TestContext, 'onTestFinished'>

/** A server until the test ends; resolves to its URL. */
async function during<Server extends { stop(): Promise<unknown> }>(
  { onTestFinished }: During,
  starting: Promise<Server>,
  urlOf: (server: Server) => string,
): Promise<string> {
  const server = await starting
  onTestFinished(async () => void (await server.stop()))
  return urlOf(server)
}

/** Every engine, by name: starts it until the test ends, and resolves to its URL. `redlock`: what its URL says of restarts. */
export function enginesWith(redlock: string): Readonly<Record<string, (context: During) => Promise<string>>> {
  return {
    SQLite: async () => `sqlite:${join(newFolder('engines'), 'leases.db')}`,
    Redis: context => during(context, startRedis(), ({ url }) => url),
    PostgreSQL: context => during(context, startPostgres(), server => `${server.url()}?create=true`),
    MySQL: context => during(context, startMariaDb(), server => `${server.url()}?create=true`),
    etcd: context => during(context, startEtcd(), ({ port }) => `etcd://127.0.0.1:${port}`),
    ZooKeeper: context => during(context, startZooKeeper(), ({ port }) => `zookeeper://127.0.0.1:${port}`),
    async Redlock(context) {
      const ports = await Promise.all(
        [0, 1, 2].map(() => during(context, startRedis(), ({ port }) => `127.0.0.1:${port}`)),
      )
      return `redlock://${ports.join(',')}?${redlock}&nodeTimeout=3000` // a busy server has time
    },
  }
}
