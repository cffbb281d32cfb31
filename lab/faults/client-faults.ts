import type { ShiftedClock } from '../servers/clock.ts'
import type { Choose, Fault, Turn } from './fault.ts'
import { between } from './random.ts'
import { CALM, oneAtATime } from './server-faults.ts'

/** Clocks of machines differ by less than a thousandth. This is far beyond what any store allows for. */
const FAST = 3

/** A client process, as faults control it. */
export interface FaultyClient {
  readonly number: number
  start(): Promise<void>
  /** Resolves when it is stopped. */
  pause(): Promise<void>
  resume(): void
  /** Blocks its event loop for this many milliseconds. */
  block(ms: number): void
  /** Blocks its event loop when the store next grants it a name for which it waited, if that is within `within` ms. */
  blockAtGrant(ms: number, within: number): void
  /** Lets its monotonic clock run this many times as fast. */
  run(speed: number): void
  kill(): Promise<void>
}

export interface ClientFaultsOptions<Client> {
  readonly ttl: number
  /** May a paused client block the store for all others? */
  readonly blocksOthers: boolean
  /** The clocks that can be changed. */
  readonly clocks: ReadonlyMap<Client, ShiftedClock>
  readonly choose: Choose
}

/** The faults of clients. Each client has one at a time. */
export class ClientFaults<Client extends FaultyClient> {
  readonly #clients: readonly Client[]
  readonly #options: ClientFaultsOptions<Client>
  readonly #busy = new Set<Client>()
  readonly #seldom: (fault: Fault) => Fault

  constructor(clients: readonly Client[], options: ClientFaultsOptions<Client>) {
    this.#clients = clients
    this.#options = options
    this.#seldom = oneAtATime(CALM * options.ttl)
  }

  get faults(): Readonly<Record<string, Fault>> {
    return {
      'client-pause': this.#fault((client, turn) => this.#pause(client, turn)),
      'client-kill': this.#fault(kill),
      'client-block': this.#fault(block),
      // Seldom, so that it waits on in calm times afterwards.
      'client-late': this.#seldom(this.#fault((client, turn) => this.#late(client, turn))),
      'client-speed': this.#fault(speedUp),
      ...(this.#options.clocks.size > 0 && {
        'client-clock': this.#fault((client, turn) => this.#jump(client, turn)),
      }),
    }
  }

  #fault(inject: (client: Client, turn: Turn) => Promise<void>): Fault {
    return async turn => {
      const idle = this.#clients.filter(client => !this.#busy.has(client))
      if (idle.length === 0) return
      const client = this.#options.choose(turn.random, idle)
      this.#busy.add(client)
      try {
        await inject(client, turn)
      } finally {
        this.#busy.delete(client)
      }
    }
  }

  async #pause(client: Client, { report, wait, length }: Turn): Promise<void> {
    const { number } = client
    const blocks = this.#options.blocksOthers && { stopsMajority: true }
    report(nameOf(client), { client: number, pausesClient: number, ...blocks })
    try {
      await client.pause()
      await wait(length)
    } finally {
      client.resume()
    }
  }

  /** Shorter than the ttl, its lease lasts when it reads the grant, but too little is left of it. */
  async #late(client: Client, { report, wait, length }: Turn): Promise<void> {
    const { ttl } = this.#options
    report(nameOf(client), { client: client.number, pausesClient: client.number })
    client.blockAtGrant(length, ttl)
    await wait(ttl + length)
  }

  /** A jump forward makes leases end early. A jump back makes them seem to last. */
  async #jump(client: Client, { report, wait, random, length }: Turn): Promise<void> {
    const clock = this.#options.clocks.get(client) as ShiftedClock
    const ms = between(random, -5, 5) * this.#options.ttl
    report(`${nameOf(client)}, by ${Math.round(ms)} ms`, { client: client.number })
    clock.jumpWall(ms)
    try {
      await wait(length)
    } finally {
      clock.jumpWall(-ms)
    }
  }
}

async function kill(client: FaultyClient, { report, wait, length }: Turn): Promise<void> {
  report(nameOf(client), { client: client.number })
  await client.kill()
  await wait(length)
  await client.start()
}

/** For others, ends of leases that it observes come early. */
async function speedUp(client: FaultyClient, { report, wait, length }: Turn): Promise<void> {
  report(`${nameOf(client)}, ${FAST} times as fast`, { client: client.number })
  client.run(FAST)
  try {
    await wait(length)
  } finally {
    client.run(1)
  }
}

async function block(client: FaultyClient, { report, wait, length }: Turn): Promise<void> {
  report(nameOf(client), { client: client.number, pausesClient: client.number })
  client.block(length)
  await wait(length)
}

function nameOf({ number }: FaultyClient): string {
  return `client ${number}`
}
