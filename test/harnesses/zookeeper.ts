import { startClock } from '../../lab/servers/clock.ts'
import { startZooKeeper } from '../../lab/servers/zookeeper.ts'
import type { Store } from '../../src/contract/store.ts'
import { createLocks } from '../../src/index.ts'
import { guaranteesOf } from '../../src/stores/zookeeper/guarantees.ts'
import { zookeeper } from '../../src/stores/zookeeper/index.ts'
import { deaths, network } from './faults.ts'
import { lacksBy, type StoreHarness } from './harness.ts'
import { Lazy } from './lazy.ts'

/** One server. src/stores/zookeeper/test tests ensembles. */
export function zookeeperHarness(): StoreHarness {
  const started = new Lazy(async stack => {
    const clock = stack.use(startClock())
    const server = stack.use(await startZooKeeper({ clock }))
    await warm(server.port)
    return { clock, servers: [server] }
  })
  return {
    name: 'zookeeper',
    store: 'zookeeper',
    // The first lease of a ttl needs a new session: three requests within a third of the ttl.
    scale: 4 / 3,
    open: async () => open((await started.value).servers.map(({ port }) => port)),
    lacks: { ...lacksBy(guaranteesOf(0)) },
    faults: {
      ...network(started, open),
      ...deaths(started),
      // Leases end by the monotonic clock, which never goes back.
      async jump(ms) {
        const { clock } = await started.value
        clock.jumpWall(ms)
        if (ms > 0) clock.jumpMonotonic(ms)
      },
    },
    end: () => started.end(),
  }
}

function open(ports: readonly number[]): Store {
  return zookeeper({ servers: ports.map(port => `127.0.0.1:${port}`) })
}

/** The first run of any code is slow in Java. */
async function warm(port: number): Promise<void> {
  for (let round = 0; round < 5; round += 1) {
    const locks = createLocks(open([port]))
    await Promise.all(Array.from({ length: 50 }, (_, index) => locks.using(`warm-${index % 10}`, async () => {})))
    await locks.close()
  }
}
