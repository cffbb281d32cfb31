import { LONGEST_TTL } from '../ledger.ts'
import type { Network } from '../network.ts'
import { disturbOne, type Process } from '../process.ts'
import type { Random } from '../random.ts'
import type { World } from '../world.ts'
import type { Ledger } from './ledger.ts'
import type { VotingServer } from './server.ts'

/**
 * What goes wrong in a run. `rolling`: one server after the other restarts, and one lease lasts. `stopping`: servers keep
 * what they were told. `moving`: wall clocks are set by up to an hour. `frantic`: the store itself is asked, and the clocks
 * of servers jump all the time. `forgetful`: servers lose what they were told, and clocks are apart by less than the
 * quarantine.
 */
export const climates = ['calm', 'rolling', 'lossy', 'stopping', 'moving', 'frantic', 'forgetful', 'lawless'] as const
export type Climate = (typeof climates)[number]

/** Milliseconds of quarantine: as long as the longest lease, and no longer. */
export const MAX_TTL: number = LONGEST_TTL

export const HOUR = 3_600_000

/** A server, and the network between it and all processes. */
export interface RemoteNode {
  readonly server: VotingServer
  readonly network: Network
}

export interface Victims {
  readonly climate: Climate
  readonly world: World
  readonly random: Random
  readonly ledger: Ledger
  readonly nodes: readonly RemoteNode[]
  readonly processes: Process[]
  /** Milliseconds by which wall clocks of processes may be wrong. */
  readonly apart: number
  /** May the clocks of servers be set, too? */
  readonly movesServers: boolean
  /** Starts a process. */
  start(): void
  isOver(): boolean
}

/** Lets things go wrong, at random. */
export class Faults {
  readonly #climate: Climate
  readonly #world: World
  readonly #random: Random
  readonly #ledger: Ledger
  readonly #nodes: readonly RemoteNode[]
  readonly #processes: Process[]
  readonly #apart: number
  readonly #movesServers: boolean
  readonly #start: () => void
  readonly #isOver: () => boolean

  constructor(victims: Victims) {
    this.#climate = victims.climate
    this.#world = victims.world
    this.#random = victims.random
    this.#ledger = victims.ledger
    this.#nodes = victims.nodes
    this.#processes = victims.processes
    this.#apart = victims.apart
    this.#movesServers = victims.movesServers
    this.#start = () => victims.start()
    this.#isOver = () => victims.isOver()
  }

  /** Strikes again and again, at random. */
  plan(): void {
    const strikes = this.#strikes[this.#climate]
    if (!strikes) return
    this.#world.after(this.#climate === 'frantic' ? this.#random.between(5, 50) : this.#random.between(50, 500), () => {
      if (this.#isOver()) return
      this.#random.pick(strikes)()
      this.plan()
    })
  }

  readonly #strikes: Partial<Record<Climate, readonly (() => void)[]>> = {
    lossy: [() => this.#cut()],
    stopping: [() => this.#disturb(), () => this.#stopServers(), () => this.#restart(0)],
    moving: [() => this.#cut(), () => this.#setClock(), () => this.#setClock()],
    frantic: [() => this.#random.pick(this.#nodes).server.setClock(this.#random.between(-3_000, 3_000))],
    forgetful: [
      () => this.#cut(),
      () => this.#setClock(),
      () => this.#disturb(),
      () => this.#restart(this.#random.pick([0, 0.5, 1])),
      () => this.#restart(1),
      () => this.#flush(),
    ],
    lawless: [
      () => this.#cut(),
      () => this.#setClock(),
      () => this.#disturb(),
      () => this.#stopServers(),
      () => this.#restart(0),
      () => void this.#administer(),
      () => void this.#administer(),
    ],
  }

  /** One process and some servers hear each other no more, or only one way. */
  #cut(): void {
    const { machine } = this.#random.pick(this.#processes)
    for (const { network } of this.#someNodes()) {
      const { cutUp, cutDown } = network
      const ways = this.#random.pick([[cutUp], [cutDown], [cutUp, cutDown]])
      for (const way of ways) way.add(machine)
      this.#world.after(this.#random.between(10, 900), () => {
        for (const way of ways) way.delete(machine)
      })
    }
  }

  #disturb(): void {
    const [processes, random, { counts }] = [this.#processes, this.#random, this.#ledger]
    disturbOne({ processes, random, counts, start: this.#start })
  }

  #stopServers(): void {
    for (const { server } of this.#someNodes()) {
      this.#ledger.counts.stops += 1
      server.stop(this.#random.pick([20, 100, 500, 1_000]))
    }
  }

  /** Some servers crash, and come back without a share of their data. */
  #restart(loss: number): void {
    for (const { server } of this.#someNodes()) this.#restartOne(server, loss)
  }

  #restartOne(server: VotingServer, loss: number): void {
    if (!server.isUp) return
    this.#ledger.counts.restarts += 1
    if (loss > 0) this.#ledger.counts.forgotten += 1
    server.crash()
    this.#world.after(this.#random.pick([1, 50, 300, 1_000]), () => server.restart(() => this.#random.chance(loss)))
  }

  #flush(): void {
    this.#ledger.counts.forgotten += 1
    this.#random.pick(this.#nodes).server.forget(() => true)
  }

  #setClock(): void {
    this.#ledger.counts.steps += 1
    const { machine } = this.#random.pick(this.#processes)
    const isProcess = !this.#movesServers || this.#random.chance(0.5)
    if (isProcess) machine.setWall(this.#random.between(-this.#apart, this.#apart))
    else
      this.#random.pick(this.#nodes).server.setClock(this.#random.pick([HOUR, 600, 60]) * this.#random.between(-1, 1))
  }

  async #administer(): Promise<void> {
    const { locks } = this.#random.pick(this.#processes)
    await locks.break(this.#random.pick(['a', 'b'])).catch(() => {})
  }

  #someNodes(): readonly RemoteNode[] {
    const share = this.#random.pick([0.2, 0.5, 0.9])
    const some = this.#nodes.filter(() => this.#random.chance(share))
    return some.length > 0 ? some : [this.#random.pick(this.#nodes)]
  }

  /** One server after the other fails, the next when a majority of the others holds all leases again. */
  roll(): void {
    let turn = this.#random.integer(0, 4)
    const next = (): void => {
      if (this.#isOver()) return
      const { server } = this.#nodes[turn++ % this.#nodes.length] as RemoteNode
      if (this.#random.chance(0.2)) server.stop(300)
      else this.#restartOne(server, this.#random.pick([0, 1, 1]))
      this.#world.after(1_000 + 1_000 + MAX_TTL + LONGEST_TTL / 2, next)
    }
    this.#world.after(500, next)
  }
}
