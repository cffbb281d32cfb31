import { Redis } from 'ioredis'
import { startProxy, type TcpProxy } from '../../../../lab/servers/proxy.ts'
import { type RedisOptions, type RedisServer, startRedis } from '../../../../lab/servers/redis.ts'
import { until } from '../../../../lab/servers/until.ts'
import { nodesOf } from '../../../../test/support.ts'
import type { Store } from '../../../contract/store.ts'
import { type LeaseEvents, subscribe } from '../../../index.ts'
import { type RedlockOptions, redlock } from '../index.ts'

/** Milliseconds: what quarantines last in these tests. */
export const MAX_TTL = 2_000

/** A busy machine may be unresponsive for much longer than the 50 ms of a node. */
export const TRUSTED: RedlockOptions = { trustRestarted: true, nodeTimeout: 1_000 }
export const CAUTIOUS: RedlockOptions = { maxTtl: MAX_TTL, nodeTimeout: 1_000 }
/** Where all waits for nodes that are dead. */
export const IMPATIENT: RedlockOptions = { trustRestarted: true, nodeTimeout: 300 }

/** What a node keeps of a name: whose vote it is, or whose it was. */
export interface Kept {
  readonly state: 'held' | 'free'
  readonly token: bigint
  readonly id: string
}

/** Independent servers, each behind a proxy if `proxies` is set. */
export async function startNodes(count: number, options: (index: number) => RedisOptions = () => ({})): Promise<Nodes> {
  const indexes = Array.from({ length: count }, (_, index) => index)
  const servers = await Promise.all(indexes.map(index => startRedis(options(index))))
  return new Nodes(servers, await Promise.all(servers.map(server => startProxy(server))))
}

export class Nodes implements AsyncDisposable {
  readonly servers: readonly RedisServer[]
  readonly proxies: readonly TcpProxy[]
  readonly #stores: Store[] = []

  constructor(servers: readonly RedisServer[], proxies: readonly TcpProxy[]) {
    this.servers = servers
    this.proxies = proxies
  }

  /** What stores call them that go through the proxies. */
  get names(): string[] {
    return this.proxies.map(({ port }) => `localhost:${port}`)
  }

  /** Through the proxies, or past them; ends with the nodes. */
  store(options: RedlockOptions = TRUSTED, at: readonly { readonly port: number }[] = this.proxies): Store {
    const [{ password }] = this.servers as [RedisServer]
    const clients = at.map(({ port }) => new Redis({ port, lazyConnect: true, ...(password && { password }) }))
    const store = redlock(clients, options)
    this.#stores.push(store)
    return store
  }

  /** The same, once all nodes serve it. */
  async connected(options: RedlockOptions = TRUSTED): Promise<Store> {
    const store = this.store(options)
    const states = async (): Promise<string[] | undefined> => (await nodesOf(store)).map(({ state }) => state)
    await until('all nodes serve', async () => (await states())?.every(state => state === 'serving'))
    return store
  }

  /** By URL, past the proxies. */
  url(query = 'trustRestarted=true&nodeTimeout=1000'): string {
    return `redlock://${this.servers.map(({ host, port }) => `${host}:${port}`).join(',')}?${query}`
  }

  /** Makes them as they are long after their start: none is in quarantine. */
  async age(prefix = 'holdfast'): Promise<void> {
    const note = async (server: RedisServer): Promise<unknown> => {
      const { run_id } = await server.info('server')
      return server.call('SET', `${prefix}:redlock:since`, `${run_id} 0`)
    }
    await Promise.all(this.servers.map(note))
  }

  /** What each says of the name, past all stores. */
  async kept(name: string): Promise<(Kept | undefined)[]> {
    return Promise.all(
      this.servers.map(async server => {
        const value = (await server.call('GET', `holdfast:redlock:{:${name}}`)) as string | null
        const [, ends = '', state, , token = '', , id = ''] = value?.split(' ') ?? []
        if (value === null) return undefined
        const [seconds] = (await server.call('TIME')) as [string]
        const isHeld = state === 'held' && Number(ends) > Number(seconds) * 1_000
        return { state: isHeld ? 'held' : 'free', token: BigInt(token), id }
      }),
    )
  }

  /** The holder of the name at each server, if any. */
  async holders(name: string): Promise<(string | undefined)[]> {
    return (await this.kept(name)).map(kept => (kept?.state === 'held' ? kept.id : undefined))
  }

  /** Starts killed servers, resumes paused ones, and restores the network. */
  async heal(): Promise<void> {
    for (const { up, down } of this.proxies) for (const way of [up, down]) way.pass()
    await Promise.all(
      this.servers.map(server => (server.isRunning ? Promise.resolve(server.resume()) : server.start())),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.heal()
    await Promise.all(this.#stores.map(store => store[Symbol.asyncDispose]()))
    await Promise.all(this.proxies.map(proxy => proxy.stop()))
    await Promise.all(this.servers.map(server => server.stop()))
  }
}

/** What may happen to a node, and is undone by `heal`. */
export const faults = {
  killed: (nodes: Nodes, index: number): Promise<void> | undefined => nodes.servers[index]?.kill(),
  stopped: (nodes: Nodes, index: number): Promise<void> | undefined => nodes.servers[index]?.pause(),
  'not heard': (nodes: Nodes, index: number): void => nodes.proxies[index]?.down.drop(),
  unreached: (nodes: Nodes, index: number): void => nodes.proxies[index]?.up.drop(),
} as const

export type Fault = keyof typeof faults

/** All such events from now on that are of a test's own: others may run at the same time. */
export function heard<Name extends keyof LeaseEvents>(
  name: Name,
  isOwn: (event: LeaseEvents[Name]) => boolean,
): LeaseEvents[Name][] & Disposable {
  const all: LeaseEvents[Name][] = []
  const stop = subscribe(name, event => isOwn(event) && all.push(event))
  return Object.assign(all, { [Symbol.dispose]: stop })
}

/** A name for which these nodes have given such tokens already. */
export async function spend(nodes: Nodes, name: string, tokens: readonly (bigint | undefined)[]): Promise<void> {
  for (const [index, token] of tokens.entries())
    if (token !== undefined)
      await nodes.servers[index]?.call(
        'SET',
        `holdfast:redlock:{:${name}}`,
        `1 0000000000000 free 0 ${token} 1000 - 0 []`,
      )
}
