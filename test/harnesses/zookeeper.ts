import { createLocks } from '../../src/index.ts'
import { zookeeper } from '../../src/stores/zookeeper/index.ts'
import { type ShiftedClock, startClock } from '../servers/clock.ts'
import { startProxy } from '../servers/proxy.ts'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.ts'
import type { StoreHarness } from './harness.ts'
import { Stack } from './stack.ts'

/** One server. What an ensemble adds is in test/zookeeper. */
export function zookeeperHarness(): StoreHarness {
  const stack = new Stack()
  let started: Promise<{ server: ZooKeeperServer; clock: ShiftedClock }> | undefined
  const start = (): NonNullable<typeof started> => {
    started ??= (async () => {
      const clock = stack.use(startClock())
      const server = stack.use(await startZooKeeper({ clock }))
      await warm(server)
      return { clock, server }
    })()
    return started
  }
  return {
    name: 'zookeeper',
    store: 'zookeeper',
    // A lease of a ttl that is new to a client takes a session, three requests, in a third of the ttl.
    scale: 2,
    open: async () => zookeeper({ servers: `127.0.0.1:${(await start()).server.port}` }),
    faults: {
      async severable() {
        const { server } = await start()
        const proxy = stack.use(await startProxy(server))
        return {
          store: zookeeper({ servers: `127.0.0.1:${proxy.port}` }),
          async cut() {
            proxy.up.drop()
            proxy.down.drop()
            return async () => {
              proxy.up.pass()
              proxy.down.pass()
            }
          },
        }
      },
      async stop() {
        const { server } = await start()
        await server.kill()
        return () => server.start()
      },
      async pause() {
        const { server } = await start()
        await server.pause()
        return async () => server.resume()
      },
      // The monotonic clock, which decides, never goes back.
      async jump(ms) {
        const { clock } = await start()
        clock.jumpWall(ms)
        if (ms > 0) clock.jumpMonotonic(ms)
      },
    },
    end: () => stack.end(),
  }
}

/** Java is slow to whatever it does for the first time. */
async function warm({ port }: ZooKeeperServer): Promise<void> {
  for (let round = 0; round < 5; round += 1) {
    const locks = createLocks(zookeeper({ servers: `127.0.0.1:${port}` }))
    await Promise.all(Array.from({ length: 50 }, (_, index) => locks.using(`warm-${index % 10}`, () => {})))
    await locks.close()
  }
}
