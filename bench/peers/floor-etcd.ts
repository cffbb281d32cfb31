import { Agent, type IncomingMessage, request } from 'node:http'
import { serveEtcd } from '../etcd.ts'
import type { Peer, Place } from '../peer.ts'

// etcd's own recipe, in plain requests to its gateway: a lease, a key, a watch on the key before. Nobody renews, and
// whoever dies while it waits holds for its ttl.
export const peer: Peer = {
  label: 'floor: a lease, a key, a watch on the one before',
  over: 'etcd',
  can: ['pairs', 'wait'],
  isFloor: true,
  serve: serveEtcd,
  async open(place) {
    const agent = new Agent({ keepAlive: true, maxSockets: 64, scheduling: 'lifo' })
    const ask = async (path: string, body: object): Promise<Answer> => {
      const response = await post(place, agent, path, body)
      let text = ''
      for await (const chunk of response.setEncoding('utf8')) text += chunk
      if (response.statusCode !== 200) throw new Error(text)
      return JSON.parse(text)
    }
    return {
      async acquire(name, ttl) {
        const { ID: lease } = await ask('lease/grant', { TTL: Math.ceil(ttl / 1_000) })
        const key = base64(`${name}\t${lease}`)
        const { header } = await ask('kv/put', { key, value: '', lease })
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
          const { header, kvs = [] } = await ask('kv/range', before)
          const [other] = kvs
          if (!other) return () => ask('lease/revoke', { ID: lease })
          await end(place, other.key, BigInt(header.revision) + 1n)
        }
      },
      close: async () => agent.destroy(),
    }
  },
}

interface Answer {
  readonly ID: string
  readonly header: { readonly revision: string }
  readonly kvs?: readonly { readonly key: string }[]
}

/** Resolves when the key is gone. */
async function end(place: Place, key: string, start_revision: bigint): Promise<void> {
  const create_request = { key, start_revision: String(start_revision), filters: ['NOPUT'] }
  const response = await post(place, new Agent(), 'watch', { create_request })
  for await (const chunk of response.setEncoding('utf8')) if (String(chunk).includes('"DELETE"')) break
  response.destroy()
}

function post({ host, ports: [port] }: Place, agent: Agent, path: string, body: object): Promise<IncomingMessage> {
  const text = JSON.stringify(body)
  const headers = { 'content-length': Buffer.byteLength(text) }
  return new Promise((resolve, reject) => {
    request({ host, port, agent, path: `/v3/${path}`, method: 'POST', headers }, resolve)
      .on('error', reject)
      .end(text)
  })
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
