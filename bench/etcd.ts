import { Agent, type IncomingMessage, request } from 'node:http'
import { startEtcd } from '../lab/servers/etcd.ts'
import type { Place } from './peer.ts'

/** For `Peer.serve`: an etcd that ends with this process. */
export async function serveEtcd(): Promise<number> {
  return (await startEtcd()).port
}

export interface Answer {
  readonly ID: string
  readonly header: { readonly revision: string }
  readonly kvs?: readonly { readonly key: string }[]
}

/** Plain requests to the gateway of an etcd. */
export class Gateway {
  readonly #place: Place
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64, scheduling: 'lifo' })

  constructor(place: Place) {
    this.#place = place
  }

  async ask(path: string, body: object): Promise<Answer> {
    const response = await this.open(path, body, this.#agent)
    let text = ''
    for await (const chunk of response.setEncoding('utf8')) text += chunk
    if (response.statusCode !== 200) throw new Error(text)
    return JSON.parse(text)
  }

  /** An answer that goes on, on a connection of its own. */
  open(path: string, body: object, agent: Agent = new Agent()): Promise<IncomingMessage> {
    const { host, ports } = this.#place
    const text = JSON.stringify(body)
    const headers = { 'content-length': Buffer.byteLength(text) }
    return new Promise((resolve, reject) => {
      request({ host, port: ports[0], agent, path: `/v3/${path}`, method: 'POST', headers }, resolve)
        .on('error', reject)
        .end(text)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
