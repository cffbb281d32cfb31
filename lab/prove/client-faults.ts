import type { ShiftedClock } from '../servers/clock.ts'
import type { Client } from './clients.ts'
import type { Choose, Fault, Turn } from './fault.ts'
import { between } from './random.ts'

/** What can go wrong at the clients, one thing at a time each. */
export class ClientFaults {
  readonly #clients: readonly Client[]
  readonly #ttl: number
  readonly #holdsUp: boolean
  readonly #clocks: ReadonlyMap<Client, ShiftedClock>
  readonly #choose: Choose
  readonly #busy = new Set<Client>()

  /** `holdsUp`: may a client that stands still keep all others from the store? `clocks`: those that can be changed. */
  constructor(
    clients: readonly Client[],
    options: { ttl: number; holdsUp: boolean; clocks: ReadonlyMap<Client, ShiftedClock>; choose: Choose },
  ) {
    this.#choose = options.choose
    this.#clients = clients
    this.#ttl = options.ttl
    this.#holdsUp = options.holdsUp
    this.#clocks = options.clocks
  }

  get faults(): Readonly<Record<string, Fault>> {
    return {
      'client-pause': turn => this.#strike(turn, client => this.#pause(client, turn)),
      'client-kill': turn => this.#strike(turn, client => this.#kill(client, turn)),
      'client-block': turn => this.#strike(turn, client => this.#block(client, turn)),
      ...(this.#clocks.size > 0 && {
        'client-clock': (turn: Turn) => this.#strike(turn, client => this.#jump(client, turn)),
      }),
    }
  }

  async #strike({ random }: Turn, act: (client: Client) => Promise<void>): Promise<undefined | false> {
    const idle = this.#clients.filter(client => !this.#busy.has(client))
    if (idle.length === 0) return false
    const client = this.#choose(random, idle)
    this.#busy.add(client)
    try {
      await act(client)
    } finally {
      this.#busy.delete(client)
    }
    return undefined
  }

  async #pause(client: Client, { tell, wait, length }: Turn): Promise<void> {
    const { number } = client
    tell(nameOf(client), { client: number, pausesClient: number, ...(this.#holdsUp && { stopsMajority: true }) })
    try {
      await client.pause()
      await wait(length)
    } finally {
      client.resume()
    }
  }

  async #kill(client: Client, { tell, wait, length }: Turn): Promise<void> {
    tell(nameOf(client), { client: client.number })
    await client.kill()
    await wait(length)
    await client.start()
  }

  async #block(client: Client, { tell, wait, length }: Turn): Promise<void> {
    tell(nameOf(client), { client: client.number, pausesClient: client.number })
    client.block(length)
    await wait(length)
  }

  /** Forward it lets leases end early, back it lets them seem to last. */
  async #jump(client: Client, { tell, wait, random, length }: Turn): Promise<void> {
    const clock = this.#clocks.get(client) as ShiftedClock
    const ms = between(random, -5, 5) * this.#ttl
    tell(`${nameOf(client)}, by ${Math.round(ms)} ms`, { client: client.number })
    clock.jumpWall(ms)
    try {
      await wait(length)
    } finally {
      clock.jumpWall(-ms)
    }
  }
}

function nameOf(client: Client): string {
  return `client ${client.number}`
}
