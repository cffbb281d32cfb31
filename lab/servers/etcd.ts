import { request } from 'node:http'
import { type Port, reservePort } from './port.ts'
import { type Command, newPlace, type Place, ServerProcess } from './process.ts'
import { startProxy, type TcpProxy } from './proxy.ts'
import { until } from './until.ts'

export interface EtcdLaunch {
  /** Further arguments, such as `--enable-grpc-gateway=false`. */
  readonly args?: readonly string[] | undefined
}

interface Member {
  readonly name: string
  /** The port on which it listens for the others, and the port at which they reach it. */
  readonly listensAt: number
  readonly isAt: number
}

/** Ports in addition to the one for clients. The one for health needs neither TLS nor users. */
interface Ports {
  readonly peer: Port
  readonly health: Port
}

interface Status {
  readonly header: { readonly member_id: string }
  readonly leader?: string
}

/** Elections take 0.5 to 1 s and the shortest lease is 1 s; by default they are 1 to 2 s, and 2 s. */
const QUICK = ['--heartbeat-interval=50', '--election-timeout=500']

/** A single etcd that serves. */
export async function startEtcd({ args = [] }: EtcdLaunch = {}): Promise<EtcdServer> {
  const { members } = await startMembers(1, args)
  return members[0] as EtcdServer
}

/** A cluster of three that serves. */
export async function startEtcdCluster({ args = [] }: EtcdLaunch = {}): Promise<EtcdCluster> {
  const { members, proxies } = await startMembers(3, args)
  return new EtcdCluster(members, proxies)
}

async function startMembers(
  count: number,
  args: readonly string[],
): Promise<{ members: EtcdServer[]; proxies: TcpProxy[] }> {
  const places = await Promise.all(Array.from({ length: count }, () => newPlace('etcd')))
  const peers = await Promise.all(places.map(() => reservePort()))
  const proxies = count > 1 ? await Promise.all(peers.map(({ number }) => startProxy({ port: number }))) : []
  const members = peers.map(({ number }, index): Member => {
    return { name: `m${index}`, listensAt: number, isAt: proxies[index]?.port ?? number }
  })
  const servers = await Promise.all(
    places.map(async (place, index) => {
      const ports = { peer: peers[index] as Port, health: await reservePort() }
      return new EtcdServer(place, ports, members, index, args)
    }),
  )
  try {
    await Promise.all(servers.map(server => server.start()))
    return { members: servers, proxies }
  } catch (error) {
    await Promise.all(servers.map(server => server.stop()))
    await Promise.all(proxies.map(proxy => proxy.stop()))
    throw error
  }
}

export class EtcdServer extends ServerProcess {
  readonly #ports: Ports
  readonly #members: readonly Member[]
  readonly #member: Member
  readonly #args: readonly string[]

  constructor(place: Place, ports: Ports, members: readonly Member[], index: number, args: readonly string[]) {
    super(place)
    this.#ports = ports
    this.#members = members
    this.#member = members[index] as Member
    this.#args = args
  }

  get endpoint(): string {
    return `${this.host}:${this.port}`
  }

  /** One request to its JSON gateway, without TLS: `call('kv/range', { key })`. Rejects if there is no 200 within 5 s. */
  call<Answer>(path: string, body: object, token = ''): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const headers = { ...(token && { authorization: token }) }
    const asked = request(
      { host: this.host, port: this.port, path: `/v3/${path}`, method: 'POST', headers, timeout: 5_000, agent: false },
      response => {
        let text = ''
        response.setEncoding('utf8').on('data', chunk => {
          text += chunk
        })
        response.on('end', () =>
          response.statusCode === 200 ? resolve(JSON.parse(text)) : reject(new Error(`${path}: ${text}`)),
        )
      },
    )
    asked.on('timeout', () => asked.destroy(new Error(`${path} was not answered`)))
    asked.on('error', reject)
    asked.end(JSON.stringify(body))
    return promise
  }

  override async stop(): Promise<void> {
    await super.stop()
    await Promise.all([this.#ports.peer.release(), this.#ports.health.release()])
  }

  protected override command(): Command {
    const client = `${this.#args.some(arg => arg.startsWith('--cert-file')) ? 'https' : 'http'}://${this.host}:${this.port}`
    const peer = (port: number): string => `http://${this.host}:${port}`
    const args = [
      `--name=${this.#member.name}`,
      `--data-dir=${this.folder}/data`,
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=${peer(this.#member.listensAt)}`,
      `--initial-advertise-peer-urls=${peer(this.#member.isAt)}`,
      `--initial-cluster=${this.#members.map(member => `${member.name}=${peer(member.isAt)}`).join(',')}`,
      `--listen-metrics-urls=http://${this.host}:${this.#ports.health.number}`,
      '--log-level=warn',
      ...QUICK,
      ...this.#args,
    ]
    return { binary: 'etcd', debianPackage: 'etcd-server', args }
  }

  protected override async isReady(): Promise<boolean> {
    const response = await fetch(`http://${this.host}:${this.#ports.health.number}/health`, {
      signal: AbortSignal.timeout(5_000),
    })
    return (await response.text()).includes('true')
  }
}

export class EtcdCluster implements AsyncDisposable {
  readonly members: readonly EtcdServer[]
  readonly #proxies: readonly TcpProxy[]

  /** `proxies`: one in front of each member, for the other members. */
  constructor(members: readonly EtcdServer[], proxies: readonly TcpProxy[]) {
    this.members = members
    this.#proxies = proxies
  }

  get endpoints(): string[] {
    return this.members.map(member => member.endpoint)
  }

  /** The member that leads. */
  async leader(among: readonly EtcdServer[] = this.members): Promise<EtcdServer> {
    return until('the cluster has a leader', async () => {
      for (const member of among) {
        const { header, leader } = await member.call<Status>('maintenance/status', {})
        if (header.member_id === leader) return member
      }
      return undefined
    })
  }

  /** Cuts a member off from the others. Clients still reach it. */
  async cut(member: EtcdServer): Promise<void> {
    const { header } = await member.call<Status>('maintenance/status', {})
    const fromMember = new RegExp(`^X-Server-From: ${BigInt(header.member_id).toString(16)}\\r$`, 'im')
    for (const [index, proxy] of this.#proxies.entries()) proxy.cut(this.members[index] === member ? /^/ : fromMember)
  }

  heal(): void {
    for (const proxy of this.#proxies) proxy.heal()
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map(member => member.stop()))
    await Promise.all(this.#proxies.map(proxy => proxy.stop()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}
