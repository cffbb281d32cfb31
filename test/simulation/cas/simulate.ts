import { isLease } from '../../../src/contract/record.ts'
import type { Store } from '../../../src/contract/store.ts'
import { StoreLocks } from '../../../src/create-locks.ts'
import { cas } from '../../../src/stores/cas/index.ts'
import { type Log, work } from '../job.ts'
import { type Held, LONGEST_TTL } from '../ledger.ts'
import { Machine } from '../machine.ts'
import { fair, Network } from '../network.ts'
import { disturbOne, Process } from '../process.ts'
import { Random } from '../random.ts'
import { World } from '../world.ts'
import { type Flaw, Records } from './register.ts'

export const climates = ['calm', 'lossy', 'stopping'] as const
type Climate = (typeof climates)[number]

type Counts = Log['counts'] &
  Record<'grants' | 'writes' | 'refusedWrites' | 'stops' | 'crashes' | 'lostReplies', number>

/** What a run has shown. */
export interface Outcome {
  readonly climate: Climate
  readonly violations: readonly string[]
  readonly counts: Readonly<Counts>
  readonly time: number
  readonly events: number
}

/** Milliseconds of a ttl that survives a crowd of writers of the record. */
const SHORTEST_TTL = 300

const DURATION = 4_000

/** The longest that a message is under way, in ms: longer than any request may be. */
const SLOWEST = 10_000

/** Runs one simulation of processes that share a register. The seed determines all of it. */
export async function simulate(seed: number, flaw: Flaw = {}): Promise<Outcome> {
  const { random } = Math
  const run = new Run(seed, climates[seed % climates.length] as Climate, flaw)
  Math.random = new Random(seed + 1).next // of pauses after a conflict
  try {
    await run.live()
  } finally {
    Math.random = random
  }
  return run.outcome
}

/** What processes believe, and what a resource sees. */
class Beliefs implements Log {
  readonly violations: string[] = []
  readonly counts: Counts = {
    grants: 0,
    writes: 0,
    refusedWrites: 0,
    timeouts: 0,
    losses: 0,
    unavailable: 0,
    aborted: 0,
    extended: 0,
    stops: 0,
    crashes: 0,
    lostReplies: 0,
  }
  isCalm = false
  readonly #world: World
  readonly #live = new Set<Held>()
  readonly #last = new Map<string, { token: bigint; at: number }[]>()
  readonly #writers = new Map<string, bigint>()
  #operations = 0

  constructor(world: World) {
    this.#world = world
  }

  fail(what: string): void {
    this.violations.push(`at ${this.#world.now.toFixed(1)} ms: ${what}`)
  }

  begin(): number {
    this.#operations += 1
    return this.#operations
  }

  gaveUp(): void {}
  settled(): void {}
  wasLost(): void {}

  handOut(held: Held, started: number): void {
    this.counts.grants += 1
    const { lease, operation } = held
    const { name, token } = lease
    const earlier = this.#last.get(name) ?? []
    for (const other of earlier)
      if (other.token === token || (other.at < started && other.token > token))
        this.fail(`${name}: token ${token} was handed out after ${other.token}`)
    this.#last.set(name, [...earlier, { token, at: this.#world.now }])
    lease.signal.addEventListener('abort', () => {
      held.isAborted = true
      if (
        this.isCalm &&
        held.mustLast &&
        lease.ttl >= SHORTEST_TTL &&
        !held.isReleased &&
        lease.signal.reason.code === 'LEASE_LOST'
      )
        this.fail(`${name}: ${operation} was lost although nothing was wrong`)
    })
    this.#live.add(held)
    this.check(held)
  }

  check(held: Held): boolean {
    if (!isHeld(held)) return false
    for (const other of this.#live)
      if (other !== held && other.lease.name === held.lease.name && other.machine.state !== 'dead' && isHeld(other))
        this.fail(`${held.lease.name}: ${other.operation} and ${held.operation} believe to hold it`)
    return true
  }

  write({ lease: { name, token } }: Held): void {
    const last = this.#writers.get(name) ?? 0n
    if (token < last) this.counts.refusedWrites += 1
    else {
      this.counts.writes += 1
      this.#writers.set(name, token)
    }
  }

  put(held: Held): void {
    held.isReleased = true
    this.#live.delete(held)
  }
}

function isHeld({ lease }: Held): boolean {
  try {
    lease.assertHeld()
    return true
  } catch {
    return false
  }
}

class Run {
  readonly #climate: Climate
  readonly #random: Random
  readonly #world = new World()
  readonly #log = new Beliefs(this.#world)
  readonly #network: Network
  readonly #records: Records
  readonly #processes: Process[] = []
  #isOver = false

  constructor(seed: number, climate: Climate, flaw: Flaw) {
    this.#climate = climate
    this.#random = new Random(seed)
    this.#network = new Network(this.#world, this.#random)
    const resolution = this.#random.pick([undefined, undefined, 1, 100, 1_000])
    this.#records = new Records(this.#world, { resolution, watches: this.#random.chance(0.5), ...flaw })
  }

  get outcome(): Outcome {
    const { violations, counts } = this.#log
    counts.lostReplies = this.#network.counts.lostReplies
    return { climate: this.#climate, violations, counts, time: this.#world.now, events: this.#world.events }
  }

  async live(): Promise<void> {
    const random = this.#random
    this.#log.isCalm = this.#climate === 'calm'
    if (this.#climate === 'lossy')
      this.#network.weather = {
        loss: random.pick([0.01, 0.05, 0.2]),
        copies: random.pick([0, 0.05, 0.2]),
        slow: random.pick([0.01, 0.05, 0.2]),
        longest: random.pick([50, 400, SLOWEST]),
      }
    for (let count = random.integer(2, 4); count > 0; count -= 1) this.#start()
    this.#plan()
    await this.#world.run(() => false, DURATION)
    await this.#end()
  }

  #start(): void {
    // Two clocks that run apart by less than the 1 % of the margin.
    const machine = new Machine(`process ${this.#processes.length}`, this.#world, this.#random, 0.004)
    const environment = { clock: machine, random: this.#random.next }
    const open = (): StoreLocks => new StoreLocks(this.#storeOf(machine), {}, environment)
    const process = new Process(machine, open)
    this.#processes.push(process)
    for (let jobs = this.#random.integer(1, 3); jobs > 0; jobs -= 1) {
      process.working += 1
      void work({
        world: this.#world,
        machine,
        random: this.#random,
        ledger: this.#log,
        names: ['a', 'b'],
        changesTtl: true,
        locks: () => process.locks,
        isOver: () => this.#isOver,
      }).then(() => {
        process.working -= 1
      })
    }
  }

  #storeOf(machine: Machine): Store {
    return cas(this.#records.of(machine, this.#network), { clock: machine, minTtl: 60 })
  }

  #plan(): void {
    this.#world.after(this.#random.between(50, 500), () => {
      if (this.#isOver) return
      const [processes, random, { counts }] = [this.#processes, this.#random, this.#log]
      if (this.#climate === 'stopping') disturbOne({ processes, random, counts, start: () => this.#start() })
      this.#plan()
    })
  }

  /** Ends the faults. Then all waiters must be served, and no lease may be left. */
  async #end(): Promise<void> {
    this.#isOver = true
    this.#network.weather = fair
    const served = (): boolean => this.#processes.every(({ working }) => working === 0)
    const before = this.#world.now
    if (!(await this.#world.run(served, before + 60_000))) this.#log.fail('a call waits for ever')
    // What comes late may hold for its ttl, and a process that has not seen that counts it from its first look.
    const store = this.#storeOf(new Machine('observer', this.#world, this.#random, 0.004))
    await this.#world.run(() => false, this.#world.now + 2 * SLOWEST)
    await this.#look(store)
    await this.#world.run(() => false, this.#world.now + 6 * LONGEST_TTL)
    for (const left of await this.#look(store)) this.#log.fail(`${left} after the end`)
  }

  async #look(store: Store): Promise<string[]> {
    const found: string[] = []
    let isDone = false
    void (async () => {
      for await (const record of store.inspect({ prefix: '' }, new AbortController().signal))
        if (isLease(record)) found.push(`${record.name} is ${record.state}`)
      isDone = true
    })()
    await this.#world.run(() => isDone, this.#world.now + 1_000)
    return found
  }
}
