import { startEtcd } from '../../lab/servers/etcd.ts'
import type { Store } from '../../src/contract/store.ts'
import { guarantees } from '../../src/stores/etcd/guarantees.ts'
import { etcd } from '../../src/stores/etcd/index.ts'
import { deaths, network } from './faults.ts'
import { lacksBy, type StoreHarness } from './harness.ts'
import { Lazy } from './lazy.ts'

/** One server that keeps its data across restarts, and grants leases from 1 s. */
export function etcdHarness(): StoreHarness {
  const started = new Lazy(async stack => ({ servers: [stack.use(await startEtcd())] as const }))
  const open = ([port]: readonly number[]): Store => etcd({ endpoints: [`127.0.0.1:${port}`] })
  return {
    name: 'etcd',
    store: 'etcd',
    scale: 20 / 9,
    open: async () => open((await started.value).servers.map(({ port }) => port)),
    faults: { ...network(started, open), ...deaths(started) },
    lacks: {
      ...lacksBy(guarantees),
      jump: 'leases end by the monotonic clock, which cannot be set; the case pause stops it too',
    },
    end: () => started.end(),
  }
}
