import type { Faults } from '../../lab/conformance/index.ts'
import type { ShiftedClock } from '../../lab/servers/clock.ts'
import type { Direction } from '../../lab/servers/pipe.ts'
import type { ServerProcess } from '../../lab/servers/process.ts'
import { startProxy } from '../../lab/servers/proxy.ts'
import type { Store } from '../../src/contract/store.ts'
import type { Lazy } from './lazy.ts'
import type { Stack } from './stack.ts'

/** The servers of one store. */
export interface Servers {
  readonly servers: readonly (ServerProcess & { readonly port: number })[]
}

/** Kills or pauses all servers. `settled` resolves when the restarted ones serve. */
export function deaths<Started extends Servers>(
  started: Lazy<Started>,
  settled: (started: Started) => Promise<unknown> = async () => {},
): Required<Pick<Faults, 'stop' | 'pause'>> {
  return {
    async stop() {
      const all = await started.value
      await Promise.all(all.servers.map(server => server.kill()))
      return async () => {
        await Promise.all(all.servers.map(server => server.start()))
        await settled(all)
      }
    },
    async pause() {
      const all = await started.value
      await Promise.all(all.servers.map(server => server.pause()))
      return async () => {
        for (const server of all.servers) server.resume()
        await settled(all)
      }
    },
  }
}

/** Cuts and delays the connections between the servers and the store that `open` opens at these local ports. */
export function network<Started extends Servers>(
  started: Lazy<Started>,
  open: (ports: number[], stack: Stack, started: Started) => Store | Promise<Store>,
): Required<Pick<Faults, 'severable' | 'delayable'>> {
  const proxied = async (): Promise<{ store: Store; ups: Direction[]; downs: Direction[] }> => {
    const all = await started.value
    const { stack } = started
    const proxies = await Promise.all(all.servers.map(async server => stack.use(await startProxy(server))))
    const ports = proxies.map(({ port }) => port)
    const store = await open(ports, stack, all)
    return { store, ups: proxies.map(({ up }) => up), downs: proxies.map(({ down }) => down) }
  }
  return {
    async severable() {
      const { store, ups, downs } = await proxied()
      const ways = [...ups, ...downs]
      return {
        store,
        async cut() {
          for (const way of ways) way.drop()
          return async () => {
            for (const way of ways) way.pass()
          }
        },
      }
    },
    async delayable() {
      const { store, ups } = await proxied()
      return {
        store,
        async delay() {
          for (const way of ups) way.hold()
          return async () => {
            for (const way of ups) way.pass()
          }
        },
      }
    },
  }
}

/** Sets the wall clock of the servers. */
export function jumps(started: Lazy<{ readonly clock: ShiftedClock }>): Required<Pick<Faults, 'jump'>> {
  return {
    async jump(ms) {
      const { clock } = await started.value
      clock.jumpWall(ms)
    },
  }
}
