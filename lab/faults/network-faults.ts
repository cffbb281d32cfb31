import type { Endpoint } from '../servers/port.ts'
import { startProxy, type TcpProxy } from '../servers/proxy.ts'
import type { Choose, Effects, Fault, Turn } from './fault.ts'
import { between, pick } from './random.ts'
import { CALM, oneAtATime } from './server-faults.ts'

/** The round trip of a client far away: in milliseconds, and at most in ttls. */
const FAR = 240
const FAREST = 0.12

/** The connections of one client: a proxy to each server. */
interface Routes {
  readonly number: number
  readonly proxies: readonly TcpProxy[]
}

export interface NetworkOptions {
  /** How many clients there are. */
  readonly clients: number
  /** The servers. */
  readonly endpoints: readonly Endpoint[]
  /** Does a lease end with the connection of its holder? @default false */
  readonly endsWithConnection?: boolean | undefined
  /** The ttl of leases, in milliseconds. */
  readonly ttl: number
  readonly choose: Choose
}

/** A proxy from each client to each server, so that one client can be cut off while the others are not. */
export class Network implements AsyncDisposable {
  readonly #routes: readonly Routes[]
  readonly #options: NetworkOptions
  readonly #busy = new Set<Routes>()
  /** The others are near. */
  readonly #alone = oneAtATime()

  static async start(options: NetworkOptions): Promise<Network> {
    const routes: Routes[] = []
    for (let number = 1; number <= options.clients; number++)
      routes.push({ number, proxies: await Promise.all(options.endpoints.map(startProxy)) })
    return new Network(routes, options)
  }

  private constructor(routes: readonly Routes[], options: NetworkOptions) {
    this.#routes = routes
    this.#options = options
  }

  /** The addresses at which a client reaches the servers, in the order of the servers. */
  of(client: number): readonly Endpoint[] {
    return this.#routes[client - 1]?.proxies ?? []
  }

  /** Of each client, in the order of the servers. */
  get proxies(): readonly (readonly TcpProxy[])[] {
    return this.#routes.map(({ proxies }) => proxies)
  }

  get faults(): Readonly<Record<string, Fault>> {
    if (this.#options.endpoints.length === 0) return {}
    // A fault that only delays ends no connection.
    const ends: Effects = this.#options.endsWithConnection ? { forgets: true } : {}
    const lasting = (begin: (proxy: TcpProxy, turn: Turn) => void, effects: Effects = ends): Fault => {
      return turn => this.#strike(turn, proxies => last(proxies, turn, proxy => begin(proxy, turn)), effects)
    }
    return {
      cut: lasting(proxy => {
        proxy.up.drop()
        proxy.down.drop()
      }),
      'cut-requests': lasting(proxy => proxy.up.drop()),
      'cut-replies': lasting(proxy => proxy.down.drop()),
      delay: lasting((proxy, { random, length }) => {
        proxy.up.delay(between(random, 0, 0.1 * length))
        proxy.down.delay(between(random, 0, 0.1 * length))
      }, {}),
      late: lasting(proxy => proxy.up.hold()),
      far: this.#alone(turn => this.#strike(turn, proxies => this.#far(proxies, turn), { steady: true })),
      reset: turn => this.#strike(turn, proxies => reset(proxies, turn), ends),
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#routes.flatMap(({ proxies }) => proxies.map(proxy => proxy.stop())))
  }

  /** A client far away. A request may take a third of the ttl, so with short ttls it is much nearer. */
  async #far(proxies: readonly TcpProxy[], turn: Turn): Promise<void> {
    const { ttl } = this.#options
    const delay = Math.min(FAR, FAREST * ttl) / 2
    await last(proxies, { ...turn, length: Math.max(turn.length, CALM * ttl) }, proxy => {
      proxy.up.delay(delay)
      proxy.down.delay(delay)
    })
  }

  /** Strikes all connections of one client, or those to one of several servers unless the fault is steady. */
  async #strike(turn: Turn, act: (proxies: readonly TcpProxy[]) => Promise<void>, effects: Effects): Promise<void> {
    const { random } = turn
    const idle = this.#routes.filter(routes => !this.#busy.has(routes))
    if (idle.length === 0) return
    const routes = this.#options.choose(random, idle)
    const { number: client, proxies } = routes
    const one = proxies.length > 1 && !effects.steady && random() < 0.5 ? pick(random, proxies) : undefined
    const where = one ? ` and server ${proxies.indexOf(one) + 1}` : ''
    this.#busy.add(routes)
    try {
      turn.report(`client ${client}${where}`, { client, ...effects })
      await act(one ? [one] : proxies)
    } finally {
      this.#busy.delete(routes)
    }
  }
}

async function last(
  proxies: readonly TcpProxy[],
  { wait, length }: Turn,
  begin: (proxy: TcpProxy) => void,
): Promise<void> {
  for (const proxy of proxies) begin(proxy)
  try {
    await wait(length)
  } finally {
    for (const proxy of proxies) {
      proxy.up.pass()
      proxy.down.pass()
    }
  }
}

/** The next request on each connection is carried out, and its reply is lost. */
async function reset(proxies: readonly TcpProxy[], { wait, length }: Turn): Promise<void> {
  for (const proxy of proxies) void proxy.cutAfterRequest('')
  await wait(length)
}
