import { base64, Gateway, serveEtcd } from '../etcd.ts'
import type { Peer } from '../peer.ts'

// etcd's own recipe, in plain requests to its gateway: a lease, a key, a watch on the key before. Nobody renews, and
// whoever dies while it waits holds for its ttl.
export const peer: Peer = {
  label: 'floor: a lease, a key, a watch on the one before',
  over: 'etcd',
  can: ['pairs', 'wait'],
  isFloor: true,
  serve: serveEtcd,
  async open(place) {
    const gateway = new Gateway(place)
    return {
      async acquire(name, ttl) {
        const { ID: lease } = await gateway.ask('lease/grant', { TTL: Math.ceil(ttl / 1_000) })
        const key = base64(`${name}\t${lease}`)
        const { header } = await gateway.ask('kv/put', { key, value: '', lease })
        const before = {
          key: base64(`${name}\t`),
          range_end: base64(`${name}\n`),
          max_create_revision: String(BigInt(header.revision) - 1n),
          sort_order: 'DESCEND',
          sort_target: 'CREATE',
          limit: 1,
          keys_only: true,
        }
        for (;;) {
          const { header, kvs = [] } = await gateway.ask('kv/range', before)
          const [other] = kvs
          if (!other) return () => gateway.ask('lease/revoke', { ID: lease })
          await end(gateway, other.key, BigInt(header.revision) + 1n)
        }
      },
      close: async () => gateway.close(),
    }
  },
}

/** Resolves when the key is gone. */
async function end(gateway: Gateway, key: string, start_revision: bigint): Promise<void> {
  const create_request = { key, start_revision: String(start_revision), filters: ['NOPUT'] }
  const response = await gateway.open('watch', { create_request })
  for await (const chunk of response.setEncoding('utf8')) if (String(chunk).includes('"DELETE"')) break
  response.destroy()
}
