import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { delimiter, join } from 'node:path'
import { chosenGeneration, missing, missingNewest, NEWEST, UNPACKED } from './binary.ts'
import type { ShiftedClock } from './clock.ts'
import { type Port, reservePort } from './port.ts'
import { type Command, newPlace, type Place, ServerProcess } from './process.ts'
import { startProxy, type TcpProxy } from './proxy.ts'
import { until } from './until.ts'

export interface ZooKeeperOptions {
  /** The clock it lives by; sessions follow the monotonic one. */
  readonly clock?: ShiftedClock | undefined
  /** Further lines of its configuration, by name. */
  readonly config?: Readonly<Record<string, string | number>> | undefined
  /** System properties, for what the configuration cannot say. */
  readonly properties?: Readonly<Record<string, string | number>> | undefined
}

export interface EnsembleOptions extends ZooKeeperOptions {
  /**
   * Go followers to their leader through proxies? They take connections before there is a leader, so that an election
   * may take seconds. @default false
   */
  readonly hasWays?: boolean | undefined
}

/** One ZooKeeper that serves: ticks of 200 ms, sessions from 400 ms to 24 days. */
export async function startZooKeeper(options: ZooKeeperOptions = {}): Promise<ZooKeeperServer> {
  const server = new ZooKeeperServer(await newPlace('zookeeper'), options)
  await server.start()
  return server
}

/** An ensemble of three that has a leader. */
export async function startEnsemble(options: EnsembleOptions = {}): Promise<Ensemble> {
  const members = await Promise.all([1, 2, 3].map(newMember))
  const waysOf = (): Promise<TcpProxy[]> =>
    Promise.all(members.map(({ quorum }) => startProxy({ port: quorum.number })))
  const ways = options.hasWays ? await Promise.all(members.map(waysOf)) : []
  const ensemble = new Ensemble(members, ways, options)
  try {
    await Promise.all(ensemble.servers.map(server => server.start()))
    return ensemble
  } catch (error) {
    await ensemble.stop()
    throw error
  }
}

export class ZooKeeperServer extends ServerProcess {
  readonly #clock: ShiftedClock | undefined
  readonly #properties: Readonly<Record<string, string | number>>

  constructor(place: Place, { clock, config = {}, properties = {} }: ZooKeeperOptions, id?: number) {
    super(place)
    this.#clock = clock
    this.#properties = properties
    const data = join(this.folder, 'data')
    const lines = {
      tickTime: 200,
      initLimit: 10,
      syncLimit: 5,
      dataDir: data,
      clientPort: this.port,
      clientPortAddress: this.host,
      minSessionTimeout: 400,
      maxSessionTimeout: 2_147_483_647,
      maxClientCnxns: 0,
      ...config,
    }
    mkdirSync(data)
    if (id !== undefined) writeFileSync(join(data, 'myid'), String(id))
    const text = Object.entries(lines).map(([name, value]) => `${name}=${value}\n`)
    writeFileSync(this.#configPath, text.join(''))
  }

  /** What it answers to a command of four letters, such as `srvr`. */
  async ask(command: string): Promise<string> {
    const socket = connect({ host: this.host, port: this.port })
    socket.setTimeout(2_000, () => socket.destroy(new Error(`no answer to ${command}`)))
    let answer = ''
    socket.on('data', piece => {
      answer += piece
    })
    socket.write(command)
    await once(socket, 'close')
    return answer
  }

  /** `standalone`, `leader` or `follower`; `undefined` while it does not serve. */
  async mode(): Promise<string | undefined> {
    return /^Mode: (\w+)/m.exec(await this.ask('srvr'))?.[1]
  }

  protected override command(): Command {
    const flags = '-Xms32m -Xmx160m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dzookeeper.admin.enableServer=false'
    const args = [
      ...flags.split(' '),
      '-Dzookeeper.4lw.commands.whitelist=*',
      // What is written need not survive the machine, only the process.
      '-Dzookeeper.forceSync=no',
      ...Object.entries(this.#properties).map(([name, value]) => `-D${name}=${value}`),
      '-cp',
      classPath(),
      'org.apache.zookeeper.server.quorum.QuorumPeerMain',
      this.#configPath,
    ]
    return { binary: 'java', debianPackage: 'zookeeper', args, env: this.#clock?.env }
  }

  // The port is open before it serves.
  protected override async isReady(): Promise<boolean> {
    return (await this.mode()) !== undefined
  }

  get #configPath(): string {
    return join(this.folder, 'zoo.cfg')
  }
}

interface Member {
  readonly place: Place
  readonly election: Port
  /** Where the others find it as a leader. */
  readonly quorum: Port
}

async function newMember(): Promise<Member> {
  const [place, election, quorum] = await Promise.all([newPlace('ensemble'), reservePort(), reservePort()])
  return { place, election, quorum }
}

/** `ways[a][b]` is how a goes to b. */
type Ways = readonly (readonly TcpProxy[])[]

/** Three servers, of which any two serve. */
export class Ensemble implements AsyncDisposable {
  readonly servers: readonly ZooKeeperServer[]
  readonly #members: readonly Member[]
  readonly #ways: Ways

  constructor(members: readonly Member[], ways: Ways, options: ZooKeeperOptions) {
    this.#members = members
    this.#ways = ways
    this.servers = members.map(({ place }, from) => {
      const peers = members.map(({ quorum, election }, to) => [
        `server.${to + 1}`,
        `127.0.0.1:${(from !== to && ways[from]?.[to]?.port) || quorum.number}:${election.number}`,
      ])
      const config = { ...Object.fromEntries(peers), ...options.config }
      return new ZooKeeperServer(place, { ...options, config }, from + 1)
    })
  }

  /** How a follower goes to its leader, with `hasWays`. */
  way(from: ZooKeeperServer, to: ZooKeeperServer): TcpProxy {
    const way = this.#ways[this.servers.indexOf(from)]?.[this.servers.indexOf(to)]
    if (!way) throw new Error('there is no such way')
    return way
  }

  /** All addresses, as a connection string has them. */
  get addresses(): string {
    return this.servers.map(({ host, port }) => `${host}:${port}`).join(',')
  }

  /** The one that leads now; waits for an election. */
  async leader(): Promise<ZooKeeperServer> {
    return until('a server leads', async () => {
      for (const server of this.servers) {
        if (server.isRunning && (await server.mode().catch(() => undefined)) === 'leader') return server
      }
      return undefined
    })
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map(server => server.kill()))
    await Promise.all(this.#ways.flat().map(way => way.stop()))
    await Promise.all(this.servers.map(server => server.stop()))
    await Promise.all(this.#members.flatMap(({ election, quorum }) => [election.release(), quorum.release()]))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}

function classPath(): string {
  if (chosenGeneration() !== 'installed') return newestClassPath()
  const [installed, unpacked] = ['/usr', UNPACKED].map(usr => join(usr, 'share/java')) as [string, string]
  // What TLS needs is there, and missing from the list in zookeeper.jar of what it needs, which is by absolute paths.
  if (existsSync(join(installed, 'zookeeper.jar')))
    return ['zookeeper', 'netty-codec', 'netty-resolver'].map(jar => join(installed, `${jar}.jar`)).join(delimiter)
  if (existsSync(join(unpacked, 'zookeeper.jar'))) return join(unpacked, '*')
  throw missing('zookeeper.jar', 'zookeeper')
}

const JARS =
  'zookeeper-jute commons-cli commons-io metrics-core netty-buffer netty-codec netty-common netty-handler netty-resolver ' +
  'netty-transport netty-transport-native-unix-common netty-transport-native-epoll slf4j-api snappy-java zookeeper'

/**
 * zookeeper.jar names the jars that it needs by absolute paths, which lead to the installed ones. With zookeeper-jute of
 * another version nearly every request fails. So all jars are listed, and zookeeper.jar is the last.
 */
function newestClassPath(): string {
  const paths = JARS.split(' ').map(jar => join(NEWEST, `share/java/${jar}.jar`))
  const absent = paths.find(path => !existsSync(path))
  if (absent) throw missingNewest(absent)
  return paths.join(delimiter)
}
