import { LeaseError } from '../../../src/contract/errors.ts'
import type { Lease, Permit } from '../../../src/contract/lease.ts'
import { isLease } from '../../../src/contract/record.ts'
import type { Store } from '../../../src/contract/store.ts'
import { LONGEST_REQUEST } from '../../../src/contract/time.ts'
import { StoreLocks } from '../../../src/create-locks.ts'
import { Machine } from '../machine.ts'
import { fair, Network } from '../network.ts'
import { disturbOne, Process } from '../process.ts'
import { Random } from '../random.ts'
import { World } from '../world.ts'
import { DistantStore, serverOf, type Variant } from './server.ts'

export const climates = ['calm', 'lossy', 'stopping'] as const
type Climate = (typeof climates)[number]

/** What a run has shown. */
export interface Outcome {
  readonly climate: Climate
  readonly violations: readonly string[]
  readonly counts: Counts
  readonly time: number
}

type Counts = Record<'grants' | 'weights' | 'writers' | 'readers' | 'busy' | 'losses' | 'stops' | 'crashes', number>

/** A permit that a process believes to hold. */
interface Holding {
  readonly permit: Lease | Permit
  readonly machine: Machine
}

const DURATION = 6_000
const LIMIT = 3
const TTLS = [150, 300, 600]
const WAITS = [0, 200, 2_000, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]

/** Runs one simulation of permits, readers and writers. The seed determines all of it. */
export async function simulate(seed: number, variant: Variant = {}): Promise<Outcome> {
  const run = new Run(seed, climates[seed % climates.length] as Climate, variant)
  await run.live()
  return run.outcome
}

class Run {
  readonly #climate: Climate
  readonly #variant: Variant
  readonly #random: Random
  readonly #world = new World()
  readonly #network: Network
  readonly #server: Store
  readonly #processes: Process[] = []
  readonly #held = new Map<string, Set<Holding>>()
  readonly #violations: string[] = []
  readonly #counts: Counts = {
    grants: 0,
    weights: 0,
    writers: 0,
    readers: 0,
    busy: 0,
    losses: 0,
    stops: 0,
    crashes: 0,
  }
  #isOver = false

  constructor(seed: number, climate: Climate, variant: Variant) {
    this.#climate = climate
    this.#variant = variant
    this.#random = new Random(seed)
    this.#network = new Network(this.#world, this.#random)
    this.#server = serverOf(this.#world)
  }

  get outcome(): Outcome {
    const [climate, violations, counts] = [this.#climate, this.#violations, this.#counts]
    return { climate, violations, counts, time: this.#world.now }
  }

  async live(): Promise<void> {
    const random = this.#random
    if (this.#climate === 'lossy')
      this.#network.weather = {
        loss: random.pick([0.01, 0.05, 0.1]),
        copies: random.pick([0, 0.05]),
        slow: random.pick([0.01, 0.05]),
        longest: random.pick([50, 400]),
      }
    for (let count = 3; count > 0; count -= 1) this.#start()
    this.#plan()
    await this.#world.run(() => false, DURATION)
    this.#isOver = true
    this.#network.weather = fair
    const served = (): boolean => this.#processes.every(({ working }) => working === 0)
    if (!(await this.#world.run(served, this.#world.now + 60_000))) this.#violations.push('a call waits for ever')
    await this.#world.run(() => false, this.#world.now + 2 * LONGEST_REQUEST)
    for await (const record of this.#server.inspect({ prefix: '' }, new AbortController().signal))
      if (isLease(record)) this.#violations.push(`${record.name} is ${record.state} after the end`)
  }

  #start(): void {
    const random = this.#random
    const machine = new Machine(`process ${this.#processes.length}`, this.#world, random)
    const store = (): Store => new DistantStore(this.#world, machine, this.#network, this.#server, this.#variant)
    const open = (): StoreLocks => new StoreLocks(store(), {}, { clock: machine, random: random.next })
    const process = new Process(machine, open)
    this.#processes.push(process)
    for (let jobs = random.integer(1, 3); jobs > 0; jobs -= 1) {
      process.working += 1
      void this.#work(process).then(() => {
        process.working -= 1
      })
    }
  }

  #plan(): void {
    this.#world.after(this.#random.between(50, 500), () => {
      if (this.#isOver) return
      const [processes, random, counts] = [this.#processes, this.#random, this.#counts]
      if (this.#climate === 'stopping') disturbOne({ processes, random, counts, start: () => this.#start() })
      this.#plan()
    })
  }

  async #work(process: Process): Promise<void> {
    while (!this.#isOver) {
      await process.machine.sleep(this.#random.between(0, 150))
      await this.#once(process)
    }
  }

  async #once({ locks, machine }: Process): Promise<void> {
    const random = this.#random
    const options = { ttl: random.pick(TTLS), wait: random.pick(WAITS) }
    const weight = random.chance(0.3) ? random.integer(2, LIMIT) : 1
    const isWriter = random.chance(0.2)
    try {
      let permit: Lease | Permit
      if (random.chance(0.5))
        permit = await locks.semaphore('permits', { limit: LIMIT }).acquire({ ...options, permits: weight })
      else permit = await locks.readWrite('pages')[isWriter ? 'writer' : 'reader'].acquire(options)
      if (permit.name === 'pages') this.#counts[isWriter ? 'writers' : 'readers'] += 1
      else if (weight > 1) this.#counts.weights += 1
      const holding = { permit, machine }
      this.#grant(holding)
      await machine.sleep(random.between(0, 120))
      this.#check(permit.name)
      this.#held.get(permit.name)?.delete(holding)
      if ((await permit.release()) === 'lost') this.#counts.losses += 1
    } catch (error) {
      if (!LeaseError.is(error)) this.#violations.push(`an unexpected error: ${String(error)}`)
      else if (error.code === 'BUSY') this.#counts.busy += 1
      else if (error.code === 'INVALID_ARGUMENT') this.#violations.push(error.message)
    }
  }

  #grant(holding: Holding): void {
    this.#counts.grants += 1
    const { name } = holding.permit
    this.#held.set(name, (this.#held.get(name) ?? new Set()).add(holding))
    this.#check(name)
  }

  /** What all processes believe at this moment, also those that are paused: their work may be under way. */
  #check(name: string): void {
    const now = [...(this.#held.get(name) ?? [])].filter(
      ({ permit, machine }) => machine.state !== 'dead' && permit.remaining > 0,
    )
    const slots = now.flatMap(({ permit }) => slotsOf(permit))
    if (new Set(slots).size < slots.length) this.#violations.push(`${name}: a slot is held twice: ${slots.join(' ')}`)
    if (name === 'permits' && slots.length > LIMIT) this.#violations.push(`${name}: ${slots.length} permits are held`)
    const hasWriter = now.some(({ permit }) => !('slots' in permit))
    if (name === 'pages' && hasWriter && now.length > 1) this.#violations.push(`${name}: a reader beside a writer`)
  }
}

function slotsOf(lease: Lease | Permit): readonly number[] {
  return 'slots' in lease ? lease.slots : [0]
}
