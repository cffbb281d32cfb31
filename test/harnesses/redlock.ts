import { redlock } from '../../src/stores/redlock/index.ts'
import { startClock } from '../servers/clock.ts'
import { startProxy } from '../servers/proxy.ts'
import { startRedis } from '../servers/redis.ts'
import type { StoreHarness } from './harness.ts'
import { Lazy } from './lazy.ts'
import { clients, type Owned } from './redis.ts'

/** A majority of three and of five, over the two client libraries that most people have. */
export function redlockHarnesses(): StoreHarness[] {
  return (['ioredis', 'node-redis'] as const).flatMap(client => [3, 5].map(size => redlockHarness(client, size)))
}

function redlockHarness(client: 'ioredis' | 'node-redis', size: number): StoreHarness {
  const create = clients[client] as (port: number) => Promise<Owned>
  const started = new Lazy(async stack => {
    const clock = stack.use(startClock())
    const servers = await Promise.all(Array.from({ length: size }, async () => stack.use(await startRedis({ clock }))))
    const own = await Promise.all(servers.map(({ port }) => create(port)))
    for (const { close } of own) stack.defer(() => close())
    return { servers, clock, clients: own.map(owned => owned.client) }
  })
  // They start with the tests, and the cases look at leases longer than any quarantine. Ten cases at once keep a small
  // machine so busy that a node may be silent for longer than anybody would wait in earnest.
  const options = { trustRestarted: true, nodeTimeout: 1_000 }
  return {
    name: `redlock of ${size} (${client})`,
    store: 'redlock',
    open: async () => redlock((await started.value).clients, options),
    faults: {
      async severable() {
        const { servers } = await started.value
        const proxies = await Promise.all(servers.map(async server => started.stack.use(await startProxy(server))))
        const own = await Promise.all(proxies.map(({ port }) => create(port)))
        for (const { close } of own) started.stack.defer(() => close())
        return {
          store: redlock(
            own.map(owned => owned.client),
            options,
          ),
          async cut() {
            for (const { up, down } of proxies) for (const way of [up, down]) way.drop()
            return async () => {
              for (const { up, down } of proxies) for (const way of [up, down]) way.pass()
            }
          },
        }
      },
      async stop() {
        const { servers } = await started.value
        await Promise.all(servers.map(server => server.kill()))
        return async () => {
          await Promise.all(servers.map(server => server.start()))
        }
      },
      async pause() {
        const { servers } = await started.value
        await Promise.all(servers.map(server => server.pause()))
        return async () => {
          for (const server of servers) server.resume()
        }
      },
      async jump(ms) {
        const { clock } = await started.value
        clock.jumpWall(ms)
      },
    },
    // Each request keeps as many servers busy, and is over only when most of them have had their turn.
    scale: 2,
    lacks: { line: 'each server has a line of its own, and they may differ' },
    end: () => started.end(),
  }
}
