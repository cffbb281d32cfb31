import { Random } from '../../../test/simulation/random.ts'
import { LeaseError } from '../../contract/errors.ts'
import type { BreakParameters, Busy, Claim, ClaimKey, Grant, Query, Store, Wake } from '../../contract/store.ts'
import type { StoreLocks } from '../../create-locks.ts'
import { memory } from '../../stores/memory/index.ts'
import { VirtualClock } from '../../testing/clock.ts'
import type { LeaseSet } from '../lease-set.ts'

const TTL = 1_000
const NAMES = ['a', 'b', 'c', 'd']
/** Milliseconds of virtual time with faults, and after them. */
const DURATION = 15_000
const REST = 60_000

/** Makes the locks of one process. A test passes others, with a mistake. */
export type OpenLocks = (store: Store, clock: VirtualClock, random: () => number) => StoreLocks

/** What a run has shown. */
export interface Shown {
  readonly violations: string[]
  readonly counts: Record<'held' | 'lost' | 'timeouts' | 'aborted' | 'breaks' | 'crashes', number>
}

/** Processes that hold random sets of names, while leases are broken, replies are lost and processes die. */
export async function crowd(seed: number, open: OpenLocks): Promise<Shown> {
  const run = new Run(seed, open)
  await run.live()
  return run
}

interface Believer {
  readonly set: LeaseSet
  readonly process: Process
}

interface Process {
  readonly locks: StoreLocks
  readonly wire: Wire
  /** Tasks that have not ended. */
  working: number
}

class Run implements Shown {
  readonly violations: string[] = []
  readonly counts: Shown['counts'] = { held: 0, lost: 0, timeouts: 0, aborted: 0, breaks: 0, crashes: 0 }
  readonly #random: Random
  readonly #open: OpenLocks
  readonly #clock = new VirtualClock()
  readonly #server = memory({ clock: this.#clock })
  readonly #processes: Process[] = []
  readonly #believers = new Set<Believer>()
  /** When each name was last broken: its holder notices within its ttl. */
  readonly #brokenAt = new Map<string, number>()
  #isOver = false

  constructor(seed: number, open: OpenLocks) {
    this.#random = new Random(seed)
    this.#open = open
  }

  async live(): Promise<void> {
    const random = this.#random
    for (let count = 0; count < 3; count += 1) this.#start()
    while (this.#clock.now() < DURATION) {
      await this.#pass(random.between(20, 400))
      if (random.chance(0.1)) await this.#break()
      if (random.chance(0.02)) this.#crash()
    }
    this.#isOver = true
    for (const { wire } of this.#processes) wire.loss = 0
    for (let passed = 0; passed < REST && this.#waiting > 0; passed += 500) await this.#pass(500)
    if (this.#waiting > 0) this.violations.push(`${this.#waiting} tasks wait for ever`)
    await this.#clock.advance(10 * TTL)
    for await (const record of this.#server.inspect({ prefix: '' }, new AbortController().signal))
      this.violations.push(`${record.name} is still ${record.state}`)
  }

  get #waiting(): number {
    return this.#processes.reduce((sum, { working }) => sum + working, 0)
  }

  #start(): void {
    const wire = new Wire(this.#server, this.#clock, this.#random)
    const locks = this.#open(wire, this.#clock, this.#random.next)
    const process: Process = { locks, wire, working: 0 }
    this.#processes.push(process)
    for (let tasks = this.#random.integer(1, 3); tasks > 0; tasks -= 1) {
      process.working += 1
      void this.#work(process).finally(() => {
        process.working -= 1
      })
    }
  }

  async #work(process: Process): Promise<void> {
    while (!this.#isOver && !process.wire.isDead) {
      await this.#sleep(this.#random.between(0, 200))
      try {
        await this.#once(process)
      } catch (error) {
        if (error instanceof Aborted) this.counts.aborted += 1
        else if (LeaseError.is(error, 'BUSY')) this.counts.timeouts += 1
        else if (LeaseError.is(error, 'LEASE_LOST') || LeaseError.is(error, 'MAX_HOLD')) this.counts.lost += 1
        else if (!LeaseError.is(error, 'STORE_UNAVAILABLE')) this.violations.push(`unexpected: ${String(error)}`)
      }
    }
  }

  async #once(process: Process): Promise<void> {
    const random = this.#random
    const names = Array.from({ length: random.integer(1, 3) }, () => random.pick(NAMES))
    const stop = new AbortController()
    const endTimer = random.chance(0.1)
      ? this.#clock.after(random.between(0, 1_000), () => stop.abort(new Aborted()))
      : () => {}
    const options = {
      ttl: TTL,
      wait: random.pick([0, 300, 5_000, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]),
      signal: stop.signal,
      ...(random.chance(0.1) && { maxHold: 200 }),
      ...(random.chance(0.1) && { heartbeat: false }),
    }
    try {
      await process.locks.all(names).using(options, async set => {
        const believer = { set, process }
        this.#believers.add(believer)
        this.counts.held += 1
        this.#check()
        const until = this.#clock.now() + random.between(0, 600)
        while (this.#clock.now() < until && !set.signal.aborted) await this.#sleep(20)
        this.#believers.delete(believer)
      })
    } finally {
      endTimer()
    }
  }

  /** No name may be held by two sets that believe in it. */
  #check(): void {
    const holders = new Map<string, Believer>()
    for (const believer of this.#believers) {
      const { set, process } = believer
      if (process.wire.isDead || set.signal.aborted) continue
      for (const name of set.names) {
        const isExcused = this.#clock.now() < (this.#brokenAt.get(name) ?? Number.NEGATIVE_INFINITY) + TTL
        if (holders.has(name) && !isExcused) this.violations.push(`two sets hold ${name} at ${this.#clock.now()}`)
        holders.set(name, believer)
      }
    }
  }

  async #pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 50) {
      await this.#clock.advance(50)
      this.#check()
    }
  }

  async #break(): Promise<void> {
    const name = this.#random.pick(NAMES)
    this.#brokenAt.set(name, this.#clock.now())
    const token = await this.#server.break(name, { by: 'the test' }, new AbortController().signal)
    if (token !== undefined) this.counts.breaks += 1
  }

  /** A process dies, and another begins. */
  #crash(): void {
    this.counts.crashes += 1
    const [dead] = this.#processes.splice(this.#random.integer(0, this.#processes.length - 1), 1)
    if (dead) dead.wire.isDead = true
    this.#start()
  }

  #sleep(ms: number): Promise<void> {
    return new Promise(resolve => this.#clock.after(ms, resolve))
  }
}

class Aborted extends Error {}

/** The connection of one process: slow, and it loses replies. */
export class Wire implements Store {
  readonly kind = 'simulated'
  readonly guarantees: Store['guarantees']
  isDead = false
  loss: number
  readonly #server: Store
  readonly #clock: VirtualClock
  readonly #random: Random

  constructor(server: Store, clock: VirtualClock, random: Random) {
    this.guarantees = server.guarantees
    this.loss = random.pick([0, 0.01, 0.1])
    this.#server = server
    this.#clock = clock
    this.#random = random
  }

  acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    return this.#send(() => this.#server.acquire(claim, signal))
  }

  renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    return this.#send(() => this.#server.renew(claim, signal))
  }

  annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    return this.#send(() => this.#server.annotate(claim, signal))
  }

  release(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    return this.#send(() => this.#server.release(key, signal))
  }

  watch(claim: Claim, wake: Wake, signal: AbortSignal): Promise<void> {
    return this.#send(async () => this.#server.watch?.(claim, wake, signal))
  }

  inspect(query: Query, signal: AbortSignal): ReturnType<Store['inspect']> {
    return this.#server.inspect(query, signal)
  }

  break(name: string, parameters: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#send(() => this.#server.break(name, parameters, signal))
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  async #send<Answer>(request: () => Promise<Answer>): Promise<Answer> {
    await this.#travel()
    const answer = await request()
    await this.#travel()
    return answer
  }

  #travel(): Promise<void> {
    if (this.isDead || this.#random.chance(this.loss)) return new Promise(() => {})
    return new Promise(resolve => this.#clock.after(this.#random.between(0, 10), resolve))
  }
}
