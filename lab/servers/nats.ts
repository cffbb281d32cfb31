import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Port, reservePort } from './port.ts'
import { type Command, newPlace, type Place, ServerProcess } from './process.ts'
import { until } from './until.ts'

/** The ports for the other servers of a cluster, by server. */
type Routes = readonly Port[]

/** What a server is told about JetStream and its users, unless a test asks for something else. */
const CONFIG = 'jetstream: enabled'

/** A NATS server with JetStream that serves. It keeps its data across restarts. `config` replaces its configuration. */
export async function startNats(config?: string): Promise<NatsServer> {
  const server = new NatsServer(await newPlace('nats'), await reservePort(), undefined, config)
  await server.start()
  return server
}

/** Three servers with a leader of JetStream. */
export async function startNatsCluster(): Promise<NatsCluster> {
  const places = await Promise.all([1, 2, 3].map(() => newPlace('nats')))
  const routes = await Promise.all(places.map(() => reservePort()))
  const servers = await Promise.all(
    places.map(async (place, index) => new NatsServer(place, await reservePort(), { index, routes })),
  )
  const cluster = new NatsCluster(servers, routes)
  try {
    await Promise.all(servers.map(server => server.start()))
    return cluster
  } catch (error) {
    await cluster.stop()
    throw error
  }
}

interface Member {
  readonly index: number
  readonly routes: Routes
}

export class NatsServer extends ServerProcess {
  /** The path of its configuration. */
  readonly #config: string
  /** Its port for health. */
  readonly #monitor: Port
  readonly #member: Member | undefined

  constructor(place: Place, monitor: Port, member?: Member, config: string = CONFIG) {
    super(place)
    this.#config = join(this.folder, 'nats.conf')
    writeFileSync(this.#config, config)
    this.#monitor = monitor
    this.#member = member
  }

  get address(): string {
    return `${this.host}:${this.port}`
  }

  /** The name of the server that leads JetStream, as this one knows it. */
  async leader(): Promise<string | undefined> {
    const { meta_cluster: cluster } = (await this.#get('jsz')) as { meta_cluster?: { leader?: string } }
    return cluster?.leader || undefined
  }

  async version(): Promise<string> {
    return ((await this.#get('varz')) as { version: string }).version
  }

  override async stop(): Promise<void> {
    await super.stop()
    await this.#monitor.release()
  }

  protected override command(): Command {
    const args = [
      '--addr',
      this.host,
      '--port',
      String(this.port),
      '--config',
      this.#config,
      '--store_dir',
      this.folder,
      '--http_port',
      String(this.#monitor.number),
    ]
    const member = this.#member
    if (member) {
      const [own, ...others] = [member.routes[member.index], ...member.routes.filter((_, at) => at !== member.index)]
      const url = (port: Port | undefined): string => `nats://${this.host}:${port?.number}`
      args.push('--name', `n${member.index}`, '--cluster_name', 'tests', '--cluster', url(own))
      args.push('--routes', others.map(url).join(','))
      args.push('--no_advertise') // clients go through the proxies that they were given
    }
    return { binary: 'nats-server', debianPackage: 'nats-server', args }
  }

  protected override async isReady(): Promise<boolean> {
    return ((await this.#get('healthz')) as { status?: string }).status === 'ok'
  }

  async #get(path: string): Promise<unknown> {
    const url = `http://${this.host}:${this.#monitor.number}/${path}`
    return (await fetch(url, { signal: AbortSignal.timeout(5_000) })).json()
  }
}

export class NatsCluster implements AsyncDisposable {
  readonly servers: readonly NatsServer[]
  readonly #ports: Routes

  constructor(servers: readonly NatsServer[], ports: Routes) {
    this.servers = servers
    this.#ports = ports
  }

  get addresses(): string[] {
    return this.servers.map(({ address }) => address)
  }

  /** The server that leads JetStream, after an election if there is none. */
  async leader(): Promise<NatsServer> {
    return until('a server leads', async () => {
      for (const server of this.servers) {
        const leader = server.isRunning ? await server.leader().catch(() => undefined) : undefined
        const found = leader === undefined ? undefined : this.servers[Number(leader.slice(1))]
        if (found?.isRunning) return found
      }
      return undefined
    })
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map(server => server.stop()))
    await Promise.all(this.#ports.map(port => port.release()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}
