import { once } from 'node:events'
import { createRequire } from 'node:module'
import { startZooKeeper } from '../../lab/servers/zookeeper.ts'
import type { Peer } from '../peer.ts'

type Done<Result> = (error: Error | null, result: Result) => void

/** The part of it that is used here; it brings no types. */
interface Client extends NodeJS.EventEmitter {
  connect(): void
  close(): void
  mkdirp(path: string, done: Done<string>): void
  create(path: string, data: null, mode: number, done: Done<string>): void
  getChildren(path: string, done: Done<string[]>): void
  exists(path: string, watcher: () => void, done: Done<object | null>): void
  remove(path: string, version: number, done: Done<void>): void
}

interface Package {
  createClient(servers: string, options: object): Client
  readonly CreateMode: { readonly EPHEMERAL_SEQUENTIAL: number }
}

const { createClient, CreateMode } = createRequire(import.meta.url)('node-zookeeper-client') as Package

const asked = <Result>(ask: (done: Done<Result>) => void): Promise<Result> =>
  new Promise((resolve, reject) => ask((error, result) => (error ? reject(error) : resolve(result))))

/** The recipe of ZooKeeper's documentation: the first of a line holds, and each waits for the one before it. */
export const peer: Peer = {
  label: 'node-zookeeper-client 1.1, the recipe',
  over: 'zookeeper',
  can: ['pairs', 'wait'],
  serve: async () => (await startZooKeeper()).port,
  async open({ host, ports: [port = 0] }) {
    const client = createClient(`${host}:${port}`, { sessionTimeout: 15_000 })
    client.connect()
    await once(client, 'connected')
    const made = new Set<string>()
    return {
      async acquire(name) {
        const parent = `/recipe/${name}`
        if (!made.has(parent)) await asked<string>(done => client.mkdirp(parent, done))
        made.add(parent)
        const path = await asked<string>(done =>
          client.create(`${parent}/lock-`, null, CreateMode.EPHEMERAL_SEQUENTIAL, done),
        )
        const own = path.slice(parent.length + 1)
        for (;;) {
          const line = (await asked<string[]>(done => client.getChildren(parent, done))).sort()
          const before = line[line.indexOf(own) - 1]
          if (before === undefined) return () => asked<void>(done => client.remove(path, -1, done))
          await new Promise<void>((resolve, reject) => {
            const look: Done<object | null> = (error, stat) => (error ? reject(error) : stat || resolve())
            client.exists(`${parent}/${before}`, () => resolve(), look)
          })
        }
      },
      close: async () => client.close(),
    }
  },
}
