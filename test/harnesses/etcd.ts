import { etcd } from '../../src/stores/etcd/index.ts'
import { type EtcdServer, startEtcd } from '../servers/etcd.ts'
import { startProxy } from '../servers/proxy.ts'
import type { StoreHarness } from './harness.ts'
import { Stack } from './stack.ts'

/** One server that keeps what it wrote, and grants leases of 1 s. */
export function etcdHarness(): StoreHarness {
  const stack = new Stack()
  let starting: Promise<EtcdServer> | undefined
  const started = (): Promise<EtcdServer> => {
    starting ??= startEtcd().then(server => stack.use(server))
    return starting
  }
  return {
    name: 'etcd',
    store: 'etcd',
    scale: 10 / 3,
    open: async () => etcd({ endpoints: [(await started()).endpoint] }),
    faults: {
      async severable() {
        const proxy = stack.use(await startProxy(await started()))
        return {
          store: etcd({ endpoints: [`127.0.0.1:${proxy.port}`] }),
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
        const server = await started()
        await server.kill()
        return () => server.start()
      },
      async pause() {
        const server = await started()
        await server.pause()
        return async () => server.resume()
      },
    },
    lacks: { jump: 'leases end by the monotonic clock, which nobody can set; pause stops it as well' },
    end: () => stack.end(),
  }
}
