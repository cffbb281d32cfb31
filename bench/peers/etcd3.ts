import { Etcd3 } from 'etcd3'
import { serveEtcd } from '../etcd.ts'
import type { Peer } from '../peer.ts'

// Its lock does not wait, and its elections are of one candidate each.
export const peer: Peer = {
  label: 'etcd3 1.1',
  over: 'etcd',
  can: ['pairs'],
  serve: serveEtcd,
  async open({ host, ports: [port] }) {
    const client = new Etcd3({ hosts: `http://${host}:${port}` })
    return {
      async acquire(name, ttl) {
        const lock = client.lock(name).ttl(Math.ceil(ttl / 1_000))
        await lock.acquire()
        return () => lock.release()
      },
      close: async () => client.close(),
    }
  },
}
