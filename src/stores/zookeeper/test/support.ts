import { vi } from 'vitest'
import type { ZooKeeperServer } from '../../../../lab/servers/zookeeper.ts'
import { signal } from '../../../../test/support.ts'
import type { Claim, Grant, Store } from '../../../contract/store.ts'
import type { Clock } from '../../../contract/time.ts'
import { Connection } from '../connection.ts'
import { Disconnected, failure } from '../failure.ts'
import { Group } from '../group.ts'
import { type ZooKeeperOptions, zookeeper } from '../index.ts'
import type { Writer } from '../jute.ts'
import { Paths } from '../paths.ts'
import { multi, type Request } from '../protocol.ts'
import type { Settings } from '../settings.ts'

export { claimOf, failureOf, look, signal } from '../../../../test/support.ts'

/** Throws unless the claim holds. */
export async function hold(store: Store, claim: Claim): Promise<Grant> {
  const answer = await store.acquire(claim, signal)
  if (!answer.held) throw new Error(`${claim.name} is held by ${answer.holder?.owner}`)
  return answer
}

interface Address {
  readonly port: number
}

/** A store over these servers, or ways to servers, of this machine. */
export function storeOf(servers: Address | readonly Address[], options: Partial<ZooKeeperOptions> = {}): Store {
  const all = Array.isArray(servers) ? servers : [servers]
  return zookeeper({ servers: all.map(({ port }: Address) => `127.0.0.1:${port}`), ...options })
}

/** Of a store over this server, with this clock. */
export function settingsWith(server: ZooKeeperServer, clock: Clock): Settings {
  return {
    ensemble: { servers: [server], tls: undefined, auth: undefined },
    paths: new Paths('', 'holdfast'),
    acl: { permissions: 31, scheme: 'world', id: 'anyone' },
    clock,
  }
}

/** The nodes of a name, as the server has them. */
export async function nodesOf(server: ZooKeeperServer, name: string): Promise<string[]> {
  const dump = await server.ask('dump')
  return Array.from(dump.matchAll(/\/holdfast\/([^/\s]+)\/(\S+)/g), ([, of, node = '']) =>
    of === name ? node : '',
  ).filter(node => node !== '')
}

/** How many watches a server has, of data and of children. */
export async function watchesOf(server: ZooKeeperServer): Promise<number> {
  const [, count] = /^zk_watch_count\s+(\d+)/m.exec(await server.ask('mntr')) ?? []
  return Number(count) // NaN while it does not serve
}

/** A separate session, for what a store cannot read or do. */
export function connectionTo(server: ZooKeeperServer, auth?: ZooKeeperOptions['auth']): Promise<Connection> {
  const session = { timeout: 20_000, id: 0n, password: new Uint8Array(16), lastZxid: 0n }
  return Connection.open(server, { tls: undefined, auth }, session, 2_000)
}

/** What `holdBack` holds back if it is asked for transactions. */
export const transactions: { readonly op: number } = multi([])

/**
 * The next request of this kind is held back, or its answer, or it arrives after its connection was lost. Resolves when that
 * is so, to what lets it go. `vi.restoreAllMocks()` must follow.
 */
export function holdBack(
  kind: { readonly op: number },
  late: 'request' | 'answer' | 'lost' = 'request',
): Promise<() => unknown> {
  const { send } = Group.prototype
  const { promise, resolve } = Promise.withResolvers<() => unknown>()
  const spy = vi.spyOn(Group.prototype, 'send')
  spy.mockImplementation(async function (this: Group, connection, request) {
    if (request.op !== kind.op) return send.call(this, connection, request)
    spy.mockImplementation(send)
    if (late === 'lost') {
      resolve(() => send.call(this, connection, request))
      throw failure(new Disconnected('the test ended it'), true)
    }
    const answer = late === 'answer' ? await send.call(this, connection, request) : undefined
    await new Promise<void>(pass => resolve(pass))
    return answer ?? send.call(this, connection, request)
  })
  return promise
}

/** Like `setAcl` of zkCli.sh. `auth`: for the authenticated user. */
export function setAcl(path: string, scheme: 'world' | 'auth', permissions = 31): Request<void> {
  const id = scheme === 'world' ? 'anyone' : ''
  const write = (to: Writer): unknown => to.string(path).int(1).int(permissions).string(scheme).string(id).int(-1)
  return { op: 7, writes: true, write: to => void write(to), read: () => {} }
}
