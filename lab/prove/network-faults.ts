import type { Endpoint, Engine } from '../engine.ts'
import { startProxy, type TcpProxy } from '../servers/proxy.ts'
import type { Choose, Fault, Turn } from './fault.ts'
import { between, pick } from './random.ts'

/** The ways of one client. */
interface Ways {
  readonly number: number
  readonly proxies: readonly TcpProxy[]
}

/** The ways of the clients to the servers, one for each pair, so that one client can be cut off and the others not. */
export class Network implements AsyncDisposable {
  readonly #ways: readonly Ways[]
  readonly #choose: Choose
  readonly #forgets: boolean
  readonly #busy = new Set<Ways>()

  /** For so many clients, to all servers of an engine. */
  static async start(
    clients: number,
    { endpoints, endsWithConnection = false }: Pick<Engine, 'endpoints' | 'endsWithConnection'>,
    choose: Choose,
  ): Promise<Network> {
    const ways: Ways[] = []
    for (let number = 1; number <= clients; number++)
      ways.push({ number, proxies: await Promise.all(endpoints.map(startProxy)) })
    return new Network(ways, endsWithConnection, choose)
  }

  private constructor(ways: readonly Ways[], forgets: boolean, choose: Choose) {
    this.#ways = ways
    this.#forgets = forgets
    this.#choose = choose
  }

  /** Where a client finds the servers, in their order. */
  of(client: number): readonly Endpoint[] {
    return this.#ways[client - 1]?.proxies ?? []
  }

  get faults(): Readonly<Record<string, Fault>> {
    const lasting = (begin: (way: TcpProxy, turn: Turn) => void): Fault => {
      return turn => this.#strike(turn, ways => last(ways, turn, way => begin(way, turn)))
    }
    if (this.#ways.every(({ proxies }) => proxies.length === 0)) return {}
    return {
      cut: lasting(way => {
        way.up.drop()
        way.down.drop()
      }),
      'cut-requests': lasting(way => way.up.drop()),
      'cut-replies': lasting(way => way.down.drop()),
      delay: lasting((way, { random, length }) => {
        way.up.delay(between(random, 0, 0.1 * length))
        way.down.delay(between(random, 0, 0.1 * length))
      }),
      late: lasting(way => way.up.hold()),
      reset: turn => this.#strike(turn, ways => reset(ways, turn)),
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#ways.flatMap(({ proxies }) => proxies.map(proxy => proxy.stop())))
  }

  /** Of one client: all of its ways, or one of several. */
  async #strike(turn: Turn, act: (ways: readonly TcpProxy[]) => Promise<void>): Promise<undefined | false> {
    const { random } = turn
    const idle = this.#ways.filter(ways => !this.#busy.has(ways))
    if (idle.length === 0) return false
    const ways = this.#choose(random, idle)
    const { number: client, proxies } = ways
    const one = proxies.length > 1 && random() < 0.5 ? pick(random, proxies) : undefined
    const where = one ? ` and server ${proxies.indexOf(one) + 1}` : ''
    this.#busy.add(ways)
    try {
      turn.tell(`client ${client}${where}`, { client, ...(this.#forgets && { forgets: true }) })
      await act(one ? [one] : proxies)
    } finally {
      this.#busy.delete(ways)
    }
    return undefined
  }
}

async function last(ways: readonly TcpProxy[], { wait, length }: Turn, begin: (way: TcpProxy) => void): Promise<void> {
  for (const way of ways) begin(way)
  try {
    await wait(length)
  } finally {
    for (const way of ways) {
      way.up.pass()
      way.down.pass()
    }
  }
}

/** The next request of each is carried out, and nobody hears of it. */
async function reset(ways: readonly TcpProxy[], { wait, length }: Turn): Promise<void> {
  for (const way of ways) void way.cutAfterRequest('')
  await wait(length)
}
