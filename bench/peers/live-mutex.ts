import { createRequire } from 'node:module'
import type { Peer } from '../peer.ts'

interface Options {
  readonly port: number
  readonly host?: string
}

interface Lmx {
  Client: new (options: Options) => LmxClient
  Broker: new (options: Options) => { ensure(): Promise<unknown> }
}

interface LmxClient {
  ensure(): Promise<unknown>
  acquire(key: string, options: object): Promise<{ id: string }>
  release(key: string, options: object): Promise<unknown>
  close(): void
}

// Not Redis: a broker of its own, one process that keeps leases in memory and hears of a client's end at once.
export const peer: Peer = {
  label: 'live-mutex 0.2 (own broker)',
  over: 'broker',
  can: ['wait'],
  async serve() {
    const port = 22_000 + Math.floor(Math.random() * 8_000)
    await new (lmx().Broker)({ port, host: '127.0.0.1' }).ensure()
    return port
  },
  async open({ host, ports: [port = 0] }) {
    const client = new (lmx().Client)({ host, port })
    await client.ensure()
    return {
      async acquire(name, ttl) {
        const { id } = await client.acquire(name, { ttl, lockRequestTimeout: 800_000 })
        return () => client.release(name, { id })
      },
      close: async () => client.close(),
    }
  },
}

function lmx(): Lmx {
  return createRequire(import.meta.url)('live-mutex') as Lmx
}
