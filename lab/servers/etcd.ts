import { request } from 'node:http'
import { PeerNetwork } from './etcd-peers.ts'
import { type Port, reservePort } from './port.ts'
import { type Command, newPlace, type Place, ServerProcess } from './process.ts'
import { until } from './until.ts'

export interface EtcdLaunch {
  /** Further arguments, such as `--enable-grpc-gateway=false`. */
  readonly args?: readonly string[] | undefined
}

interface Member {
  readonly name: string
  /** Where it listens for the others, and where these find it. */
  readonly listensAt: number
  readonly isAt: number
}

/** Beside the one for clients. The last tells of its health without TLS and users. */
interface Ports {
  readonly peer: Port
  readonly health: Port
}

interface Status {
  readonly header: { readonly member_id: string }
  readonly leader?: string
}

/** Elections within 0.5 to 1 s, and leases of 1 s; with the defaults of etcd 1 to 2 s, and 2 s. */
const QUICK = ['--heartbeat-interval=50', '--election-timeout=500']

/** One etcd that serves, a cluster by itself. */
export async function startEtcd({ args = [] }: EtcdLaunch = {}): Promise<EtcdServer> {
  const { members, network } = await startMembers(1, args)
  await network[Symbol.asyncDispose]() // nobody is there to talk to
  return members[0] as EtcdServer
}

/** A cluster of three that serves. */
export async function startEtcdCluster({ args = [] }: EtcdLaunch = {}): Promise<EtcdCluster> {
  const { members, network } = await startMembers(3, args)
  return new EtcdCluster(members, network)
}

async function startMembers(
  count: number,
  args: readonly string[],
): Promise<{ members: EtcdServer[]; network: PeerNetwork }> {
  const places = await Promise.all(Array.from({ length: count }, () => newPlace('etcd')))
  const peers = await Promise.all(places.map(() => reservePort()))
  const network = await PeerNetwork.start(peers.map(({ number }) => number))
  const members = peers.map(({ number }, index): Member => {
    return { name: `m${index}`, listensAt: number, isAt: network.ports[index] as number }
  })
  const servers = await Promise.all(
    places.map(async (place, index) => {
      const ports = { peer: peers[index] as Port, health: await reservePort() }
      return new EtcdServer(place, ports, members, index, args)
    }),
  )
  try {
    await Promise.all(servers.map(server => server.start()))
    return { members: servers, network }
  } catch (error) {
    await Promise.all(servers.map(server => server.stop()))
    await network[Symbol.asyncDispose]()
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
    const response = await fetch(`http://${this.host}:${this.#ports.health.number}/health`)
    return (await response.text()).includes('true')
  }
}

export class EtcdCluster implements AsyncDisposable {
  readonly members: readonly EtcdServer[]
  readonly #network: PeerNetwork

  constructor(members: readonly EtcdServer[], network: PeerNetwork) {
    this.members = members
    this.#network = network
  }

  get endpoints(): string[] {
    return this.members.map(member => member.endpoint)
  }

  /** The member that says that it leads. */
  async leader(among: readonly EtcdServer[] = this.members): Promise<EtcdServer> {
    return until('the cluster has a leader', async () => {
      for (const member of among) {
        const { header, leader } = await member.call<Status>('maintenance/status', {})
        if (header.member_id === leader) return member
      }
      return undefined
    })
  }

  /** Cuts a member off from the others; clients still reach it. */
  async cut(member: EtcdServer): Promise<void> {
    const { header } = await member.call<Status>('maintenance/status', {})
    this.#network.cut(this.members.indexOf(member), BigInt(header.member_id).toString(16))
  }

  heal(): void {
    this.#network.heal()
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map(member => member.stop()))
    await this.#network[Symbol.asyncDispose]()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}
