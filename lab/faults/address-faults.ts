import type { Names } from '../servers/names.ts'
import type { TcpProxy } from '../servers/proxy.ts'
import type { Fault } from './fault.ts'
import { pick } from './random.ts'

export interface Addresses {
  /** The proxies of each client, in the order of the servers. */
  readonly proxies: readonly (readonly TcpProxy[])[]
  /** The names by which clients know the servers, if they do. */
  readonly names: Names | undefined
}

/** The faults of one of several addresses. All clients reconnect, and must be served by the other servers. */
export function addressFaults({ proxies, names }: Addresses): Record<string, Fault> {
  const servers = Array.from(proxies[0] ?? [], (_, index) => index + 1)
  if (servers.length < 2) return {}
  const reconnect = (): void => {
    for (const proxy of proxies.flat()) proxy.reset()
  }
  return {
    async 'first-address'({ report, wait, length }) {
      const first = proxies.map(([proxy]) => proxy as TcpProxy)
      report('server 1')
      for (const proxy of first) proxy.cut(/^/)
      reconnect()
      try {
        await wait(length)
      } finally {
        for (const proxy of first) proxy.heal()
      }
    },
    ...(names && {
      async 'name-server'({ random, report, wait, length }) {
        const server = pick(random, servers)
        const name = names.of(server)
        report(`the name of server ${server}`)
        names.silence(name)
        try {
          reconnect()
          await wait(length / 4)
          // By now look-ups of this name may be many.
          reconnect()
          await wait((length * 3) / 4)
        } finally {
          names.answer(name)
        }
      },
    }),
  }
}
