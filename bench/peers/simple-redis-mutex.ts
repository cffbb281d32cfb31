import { createClient } from 'redis'
import { lock } from 'simple-redis-mutex'
import type { Peer } from '../peer.ts'

export const peer: Peer = {
  label: 'simple-redis-mutex 3 (node-redis)',
  over: 'redis',
  key: name => `@simple-redis-mutex:lock-${name}`,
  can: ['pairs', 'wait'],
  async open({ host, ports: [port = 0] }) {
    const client = createClient({ socket: { host, port } })
    await client.connect()
    return {
      acquire: (name, ttl) => lock(client as never, name, { timeout: ttl }),
      close: async () => client.destroy(),
    }
  },
}
