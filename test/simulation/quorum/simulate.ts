import { subscribe } from '../../../src/contract/events.ts'
import type { Lease } from '../../../src/contract/lease.ts'
import type { Store } from '../../../src/contract/store.ts'
import { LONGEST_REQUEST } from '../../../src/contract/time.ts'
import { StoreLocks } from '../../../src/create-locks.ts'
import type { Member } from '../../../src/stores/quorum/member.ts'
import { QuorumStore } from '../../../src/stores/quorum/store.ts'
import { guaranteesOf } from '../../../src/stores/redlock/guarantees.ts'
import { type Surroundings, work } from '../job.ts'
import { Held, LONGEST_TTL } from '../ledger.ts'
import { Machine } from '../machine.ts'
import { fair, Network } from '../network.ts'
import { Process } from '../process.ts'
import { Random } from '../random.ts'
import type { Outcome as RunOutcome } from '../simulate.ts'
import { World } from '../world.ts'
import { type Climate, climates, Faults, HOUR, MAX_TTL, type RemoteNode } from './faults.ts'
import { type Count, Ledger } from './ledger.ts'
import { RemoteMember } from './member.ts'
import { pass } from './passer.ts'
import { type Flaw, VotingServer } from './server.ts'
import { Witness } from './witness.ts'

/** A deliberate error, of the servers, of what a process makes of them, or of the store. */
export interface Variant {
  readonly flaw?: Flaw
  member?(member: Member, index: number, members: readonly Member[]): Member
  store?(store: Store, machine: Machine): Store
}

export type Outcome = RunOutcome<Climate, Count>

const DURATION = 4_000
const ROLLING_DURATION = 9_000

/** The longest that a message is under way, in ms: longer than any request may be. */
const SLOWEST = 8_000

const TO_CONNECT = 1_000

/** All of a run follows from its seed. */
export async function simulate(seed: number, variant: Variant = {}): Promise<Outcome> {
  const run = new Run(seed, climates[seed % climates.length] as Climate, variant)
  await run.live()
  return run.outcome
}

class Run {
  readonly #climate: Climate
  readonly #random: Random
  readonly #variant: Variant
  readonly #world: World = new World()
  readonly #ledger: Ledger
  readonly #nodes: RemoteNode[]
  readonly #processes: Process[] = []
  readonly #nodeTimeout: number
  /** Milliseconds by which wall clocks of processes may be wrong. */
  readonly #apart: number
  readonly #movesServers: boolean
  #isOver = false

  constructor(seed: number, climate: Climate, variant: Variant) {
    this.#climate = climate
    this.#random = new Random(seed)
    this.#variant = variant
    this.#ledger = new Ledger(this.#world)
    this.#apart = this.#clocksApart()
    this.#movesServers = climate === 'moving' && this.#random.chance(0.5)
    this.#nodeTimeout = climate === 'frantic' ? 20 : this.#random.pick([20, 50, 50])
    const options = { maxTtl: MAX_TTL, flaw: variant.flaw ?? {}, fail: (what: string) => this.#ledger.fail(what) }
    this.#nodes = Array.from({ length: this.#random.pick([3, 3, 5]) }, (_, index): RemoteNode => {
      // With those of the processes the clocks run apart by less than the 1 % of the margin.
      const rate = this.#random.between(0.999, 1.001)
      const server = new VotingServer(`node ${index + 1}`, this.#world, { ...options, rate })
      return { server, network: new Network(this.#world, this.#random) }
    })
    const isOf = (operation: string) => (seen: { readonly note: string } | undefined) =>
      seen?.note.split(' ')[0] === operation
    this.#ledger.knows = (name, operation) =>
      this.#nodes.some(({ server }) => {
        const { holder, queue } = server.look(name)
        return [holder, ...queue].some(isOf(operation))
      })
    this.#ledger.holds = (name, operation) => {
      const holders = this.#nodes.filter(({ server }) => isOf(operation)(server.look(name).holder))
      return holders.length > this.#nodes.length / 2
    }
  }

  get outcome(): Outcome {
    const { violations, counts } = this.#ledger
    for (const { server, network } of this.#nodes) {
      counts.refusedLate += server.refusedLate
      counts.refusedWithdrawn += server.refusedWithdrawn
      counts.restored += server.restored
      counts.quarantined += server.quarantined
      counts.lostReplies += network.counts.lostReplies
    }
    return { climate: this.#climate, violations, counts, time: this.#world.now, events: this.#world.events }
  }

  #clocksApart(): number {
    if (this.#climate === 'forgetful') return 0.45 * MAX_TTL
    // Servers that cap the floors of fast clients give uneven tokens to begin with, by which a lease loses votes for good.
    if (this.#climate === 'rolling') return 3_000
    return this.#climate === 'frantic' ? this.#random.pick([300, HOUR]) : HOUR
  }

  /** Is the network well? */
  get #isFair(): boolean {
    return this.#climate === 'calm' || this.#climate === 'rolling'
  }

  async live(): Promise<void> {
    const { counts } = this.#ledger
    const fail = (reason: unknown): void => this.#ledger.fail(`a rejection that nobody handles: ${String(reason)}`)
    process.on('unhandledRejection', fail)
    const stop = subscribe('votes_counted', ({ outcome, rounds }) => {
      if (outcome === 'tie') counts.ties += 1
      if (rounds > 1) counts.secondRounds += 1
    })
    try {
      this.#begin()
      await this.#world.run(() => false, this.#climate === 'rolling' ? ROLLING_DURATION : DURATION)
      await this.#end()
    } finally {
      stop()
      process.off('unhandledRejection', fail)
    }
  }

  #begin(): void {
    const random = this.#random
    this.#ledger.isCalm = this.#climate === 'calm'
    this.#ledger.isTold = ['calm', 'lossy', 'stopping'].includes(this.#climate)
    // The clocks of servers decide when leases end.
    this.#ledger.isExclusive = !this.#movesServers && this.#climate !== 'frantic'
    this.#setClocks()
    const isFrantic = this.#climate === 'frantic'
    for (const { network } of this.#nodes) {
      // As over a connection that lasts.
      network.isOrdered = this.#isFair
      if (isFrantic)
        network.weather = { loss: random.pick([0, 0.1]), copies: 0.4, slow: random.pick([0.1, 0.3]), longest: 300 }
      else if (!this.#isFair)
        network.weather = {
          loss: random.pick([0, 0.01, 0.02, 0.1]),
          copies: random.pick([0, 0.05, 0.2]),
          slow: random.pick([0.01, 0.05, 0.2, 0.6]),
          longest: random.pick([30, 60, 200, SLOWEST]),
        }
    }
    for (let count = random.integer(2, 4); count > 0; count -= 1) this.#start()
    const faults = new Faults({
      climate: this.#climate,
      world: this.#world,
      random,
      ledger: this.#ledger,
      nodes: this.#nodes,
      processes: this.#processes,
      apart: this.#apart,
      movesServers: this.#movesServers,
      start: () => this.#start(),
      isOver: () => this.#isOver,
    })
    const [process] = this.#processes
    if (this.#climate === 'rolling' && process) {
      this.#hold(process).catch(error => this.#ledger.fail(String(error)))
      faults.roll()
    } else faults.plan()
  }

  #setClocks(): void {
    for (const { server } of this.#nodes) server.setClock(this.#random.between(-this.#apart, this.#apart))
  }

  #start(): void {
    const machine = new Machine(`process ${this.#processes.length}`, this.#world, this.#random)
    machine.setWall(this.#random.between(-this.#apart, this.#apart))
    machine.hasStopped = false
    const environment = { clock: machine, random: this.#random.next }
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
      changesTtl: this.#nodes.every(({ network }) => network.weather.copies === 0),
      locks: () => process.locks,
      isOver: () => this.#isOver,
    }
    const { store } = process.locks
    const fail = (what: unknown): void => this.#ledger.fail(String(what))
    for (let jobs = this.#random.integer(1, 3); jobs > 0; jobs -= 1) {
      process.working += 1
      const working = this.#climate === 'frantic' ? pass({ ...around, store, fail }) : work(around)
      void working.catch(fail).then(() => {
        process.working -= 1
      })
    }
  }

  #storeOf(machine: Machine): Store {
    const { member: changed = member => member, store: wrapped = store => store } = this.#variant
    const remote = this.#nodes.map(({ server, network }) => new RemoteMember(machine, server, network))
    const store = new QuorumStore(
      remote.map((member, index) => changed(member, index, remote)),
      {
        kind: 'simulated',
        guarantees: { ...guaranteesOf(remote.length, true, false), minTtl: 10 },
        nodeTimeout: this.#nodeTimeout,
        maxTtl: MAX_TTL,
        drift: 0.01,
        environment: { clock: machine, random: this.#random.next },
      },
    )
    const patience = this.#isFair ? 3 * this.#nodeTimeout + TO_CONNECT : Number.POSITIVE_INFINITY
    return new Witness(wrapped(store, machine), this.#world, machine, this.#ledger, patience)
  }

  /** All the time, by one and the same lease. */
  async #hold({ locks, machine }: Process): Promise<void> {
    this.#ledger.steady = ['long']
    const operation = this.#ledger.begin()
    const started = this.#world.now
    const lease = await locks.acquire('long', {
      ttl: this.#random.pick([100, 600, LONGEST_TTL]),
      note: String(operation),
    })
    const held = new Held(lease, operation, machine, true)
    this.#ledger.handOut(held, started)
    for (let turn = 0; !this.#isOver && this.#ledger.check(held); turn += 1) {
      await machine.sleep(20)
      if (turn % 10 === 0) await this.#publish(lease, operation, turn).catch(() => {})
    }
    this.#ledger.put(held)
    await lease.release()
  }

  /** Changes the note; whoever looks from then on must see it. */
  async #publish(lease: Lease, operation: number, turn: number): Promise<void> {
    await lease.annotate(`${operation} ${turn}`)
    this.#ledger.counts.notes += 1
    const { locks } = this.#random.pick(this.#processes)
    const {
      holders: [holder],
    } = await locks.inspect(lease.name)
    if (holder?.note !== `${operation} ${turn}`)
      this.#ledger.fail(`${lease.name}: the note ${turn} was written, and ${holder?.note} is shown`)
  }

  /** The faults end; whoever waits must be served, and nothing may be left. */
  async #end(): Promise<void> {
    this.#isOver = true
    for (const { server, network } of this.#nodes) {
      if (this.#movesServers || this.#climate === 'frantic') server.setClock(HOUR) // places in line run out by it, too
      network.weather = fair
      network.cutUp.clear()
      network.cutDown.clear()
    }
    const served = (): boolean => this.#processes.every(({ working }) => working === 0)
    if (!(await this.#world.run(served, this.#world.now + 60_000)))
      this.#ledger.fail(`${this.#processes.filter(({ working }) => working > 0).length} processes wait for ever`)
    // A late copy of a request may come just in time still, and hold for its ttl.
    const rest = Math.max(LONGEST_REQUEST, 2 * SLOWEST) + LONGEST_TTL + 100
    await this.#world.run(() => false, this.#world.now + rest)
    for (const { server } of this.#nodes)
      for (const name of server.left())
        this.#ledger.fail(`${name} is held or waited for at ${server.name} after the end`)
  }
}
