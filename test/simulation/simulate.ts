import { LONGEST_REQUEST } from '../../src/contract/time.ts'
import { StoreLocks } from '../../src/create-locks.ts'
import { type Surroundings, work } from './job.ts'
import { type Count, Ledger, LONGEST_TTL } from './ledger.ts'
import { Machine } from './machine.ts'
import { fair, Network } from './network.ts'
import { disturbOne, Process } from './process.ts'
import { Random } from './random.ts'
import { type Mistake, RemoteStore } from './remote.ts'
import { type Flaw, Server } from './server.ts'
import { World } from './world.ts'

/** The faults of a run. */
export const climates = ['calm', 'lossy', 'stopping', 'outages', 'lawless', 'refusing'] as const
type Climate = (typeof climates)[number]

/** A deliberate error, of the server, of the clients' store or of their clocks. */
export interface Variant {
  readonly flaw?: Flaw
  readonly mistake?: Mistake
  /** Process clocks that do not count pauses. */
  readonly sleepingClocks?: boolean
  /** Skip the comparison with the reference server? */
  readonly isSeenByClientsOnly?: boolean
}

/** The result of a run. */
export interface Outcome<Kind = Climate, Counted extends string = Count> {
  readonly climate: Kind
  readonly violations: readonly string[]
  readonly counts: Readonly<Record<Counted, number>>
  /** Virtual milliseconds, and events. */
  readonly time: number
  readonly events: number
}

const DURATION = 4_000

/** The longest that a message is under way, in ms: longer than any request may be. */
const SLOWEST = 8_000

/** Runs one simulation. The seed determines all of it. */
export async function simulate(seed: number, variant: Variant = {}): Promise<Outcome> {
  const climate = climates[seed % climates.length] as Climate
  const run = new Run(seed, climate, variant)
  await run.live()
  return run.outcome
}

class Run {
  readonly #climate: Climate
  readonly #random: Random
  readonly #variant: Variant
  readonly #world: World = new World()
  readonly #ledger: Ledger
  readonly #network: Network
  readonly #server: Server
  readonly #processes: Process[] = []
  #isOver = false
  /** Since when there have been no faults. */
  #fairSince = Number.POSITIVE_INFINITY

  constructor(seed: number, climate: Climate, variant: Variant) {
    this.#climate = climate
    this.#random = new Random(seed)
    this.#variant = variant
    this.#ledger = new Ledger(this.#world, !variant.isSeenByClientsOnly)
    this.#network = new Network(this.#world, this.#random)
    this.#server = new Server(this.#world, this.#ledger, variant.flaw ?? {})
  }

  get outcome(): Outcome {
    const { violations, counts } = this.#ledger
    counts.refusedLate = this.#server.refusedLate
    counts.lostReplies = this.#network.counts.lostReplies
    return { climate: this.#climate, violations, counts, time: this.#world.now, events: this.#world.events }
  }

  async live(): Promise<void> {
    const random = this.#random
    this.#ledger.isCalm = this.#climate === 'calm'
    if (this.#climate !== 'calm')
      this.#network.weather = {
        loss: random.pick([0.01, 0.05, 0.2]),
        copies: random.pick([0, 0.05, 0.2]),
        slow: random.pick([0.01, 0.05, 0.2]),
        longest: random.pick([50, 400, SLOWEST]),
      }
    this.#ledger.isExact = this.#network.weather.copies === 0
    for (let count = random.integer(2, 4); count > 0; count -= 1) this.#start()
    this.#plan()
    if (this.#ledger.isCalm) this.#fairSince = 0
    this.#checkWaiters()
    await this.#world.run(() => false, DURATION)
    await this.#end()
  }

  #start(): void {
    const machine = new Machine(`process ${this.#processes.length}`, this.#world, this.#random)
    const { sleepingClocks = false } = this.#variant
    const clock = sleepingClocks ? machine.sleeping() : machine
    const environment = { clock, random: this.#random.next }
    const open = (): StoreLocks => new StoreLocks(this.#storeOf(machine), {}, environment)
    const process = new Process(machine, open)
    this.#processes.push(process)
    machine.onResume = () => this.#ledger.checkAll(machine)
    const around: Surroundings = {
      world: this.#world,
      machine,
      random: this.#random,
      ledger: this.#ledger,
      names: ['a', 'b'],
      // A copy that comes after a renewal for longer would undo it: a store must not send again what was answered.
      changesTtl: this.#ledger.isExact,
      locks: () => process.locks,
      isOver: () => this.#isOver,
      slowness: this.#climate === 'refusing' ? 4 : 1,
    }
    for (let jobs = this.#random.integer(1, 3); jobs > 0; jobs -= 1) {
      process.working += 1
      void work(around).then(() => {
        process.working -= 1
      })
    }
  }

  #storeOf(machine: Machine): RemoteStore {
    return new RemoteStore(machine, this.#network, this.#server, this.#ledger, this.#variant.mistake ?? {}, () =>
      this.#refuses(),
    )
  }

  #refuses(): boolean {
    return this.#climate === 'refusing' && !this.#isOver && this.#random.chance(0.9)
  }

  #checkWaiters(): void {
    this.#world.after(250, () => {
      this.#ledger.checkWaiters(this.#fairSince)
      this.#checkWaiters()
    })
  }

  /** Injects faults at random times. */
  #plan(): void {
    const strike = this.#strikes[this.#climate]
    if (!strike) return
    this.#world.after(this.#random.between(50, 500), () => {
      if (this.#isOver) return
      strike()
      this.#plan()
    })
  }

  readonly #strikes: Partial<Record<Climate, () => void>> = {
    lossy: () => this.#cut(),
    stopping: () => this.#disturb(),
    outages: () => this.#outage(),
    lawless: () => this.#lawless(),
    refusing: () => this.#lawless(),
  }

  #cut(): void {
    const { cutUp, cutDown } = this.#network
    const { machine } = this.#random.pick(this.#processes)
    const ways = this.#random.pick([[cutUp], [cutDown], [cutUp, cutDown]])
    for (const way of ways) way.add(machine)
    this.#world.after(this.#random.between(10, 900), () => {
      for (const way of ways) way.delete(machine)
    })
  }

  #disturb(): void {
    const [processes, random, { counts }] = [this.#processes, this.#random, this.#ledger]
    disturbOne({ processes, random, counts, start: () => this.#start() })
  }

  #outage(): void {
    const random = this.#random
    const ms = random.pick([20, 100, 500, 1_000])
    const choice = random.next()
    if (choice < 0.3) this.#server.refuse(ms)
    else if (choice < 0.6) this.#server.stop(ms)
    else {
      const step = random.pick([-60_000, -400, 30, 400, 60_000])
      if (step < 0) this.#ledger.mayBeLate = true
      this.#server.step(step)
    }
  }

  #lawless(): void {
    const choice = this.#random.next()
    if (choice < 0.5) void this.#administer()
    else if (choice < 0.6) this.#server.leap(this.#random.pick([50, 300, 5_000]))
    else if (choice < 0.7) this.#server.forget()
    else if (choice < 0.85) this.#disturb()
    else this.#cut()
  }

  async #administer(): Promise<void> {
    const { locks } = this.#random.pick(this.#processes)
    await locks.break(this.#random.pick(['a', 'b'])).catch(() => {})
  }

  /** Ends the faults. Then all waiters must be served, and no lease may be left. */
  async #end(): Promise<void> {
    this.#isOver = true
    this.#fairSince = Math.min(this.#fairSince, this.#world.now)
    this.#network.weather = fair
    this.#network.cutUp.clear()
    this.#network.cutDown.clear()
    const served = (): boolean => this.#processes.every(({ working }) => working === 0)
    if (!(await this.#world.run(served, this.#world.now + 60_000)))
      this.#ledger.fail(`${this.#processes.filter(({ working }) => working > 0).length} processes wait for ever`)
    // A late copy of a request may still arrive in time, and hold for its ttl.
    const rest = Math.max(LONGEST_REQUEST, 2 * SLOWEST) + LONGEST_TTL + 100
    await this.#world.run(() => false, this.#world.now + rest)
    for (const name of this.#ledger.left()) this.#ledger.fail(`${name} is held or waited for ${rest} ms after the end`)
  }
}
