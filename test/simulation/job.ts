import { LeaseError } from '../../src/contract/errors.ts'
import type { Lease } from '../../src/contract/lease.ts'
import { LAST_REQUEST, LONGEST_TRY, requestLimit } from '../../src/contract/time.ts'
import type { AcquireOptions } from '../../src/core/options.ts'
import type { Locks } from '../../src/create-locks.ts'
import { Held, LONGEST_TTL } from './ledger.ts'
import type { Machine } from './machine.ts'
import type { Random } from './random.ts'
import type { World } from './world.ts'

const TTLS = [60, 100, 150, 300, 600, LONGEST_TTL]
const WAITS = [0, 0, 40, 200, 1_000, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]

/** Milliseconds by which a call may exceed its time limit, because clocks differ. */
const GRACE = 20

/** Records and checks the events of jobs. */
export interface Log {
  readonly counts: Record<'timeouts' | 'losses' | 'unavailable' | 'aborted' | 'extended', number>
  /** The number of a new acquisition. */
  begin(name: string, machine: Machine): number
  /** The caller was notified that it holds no lease. */
  gaveUp(operation: number, name: string): void
  /** A call that began at `started` returned a lease. */
  handOut(held: Held, started: number): void
  /** Checks what the lease reports now, and returns it. */
  check(held: Held): boolean
  /** A write arrives at the resource, which knows the highest token seen. */
  write(held: Held): void
  /** The holder has finished with the lease. */
  put(held: Held): void
  /** A release was confirmed. */
  settled(operation: number): void
  /** A release reported that the lease had been lost before. */
  wasLost(operation: number, name: string): void
  fail(what: string): void
}

/** The environment of a job. */
export interface Surroundings {
  readonly world: World
  readonly machine: Machine
  readonly random: Random
  readonly ledger: Log
  readonly names: readonly string[]
  /** May it extend a lease for another ttl? */
  readonly changesTtl: boolean
  /** The locks of its process, which may be closed and opened again. */
  locks(): Locks
  isOver(): boolean
  /** How many times longer its work takes. @default 1 */
  readonly slowness?: number
}

/** Acquires, works, writes to the resource and releases, in a loop and in random ways. */
export async function work(around: Surroundings): Promise<void> {
  while (!around.isOver()) {
    await around.machine.sleep(around.random.between(0, 150))
    await new Job(around).once()
  }
}

class Job {
  readonly #around: Surroundings
  readonly #operation: number
  readonly #name: string
  readonly #options: AcquireOptions & { ttl: number; wait: number }
  readonly #started: number
  #abortedAt: number | undefined
  #held: Held | undefined

  constructor(around: Surroundings) {
    const { world, machine, random, ledger, names } = around
    const controller = new AbortController()
    this.#around = around
    this.#name = random.pick(names)
    this.#operation = ledger.begin(this.#name, machine)
    this.#started = world.now
    this.#options = {
      ttl: random.pick(TTLS),
      wait: random.pick(WAITS),
      note: String(this.#operation),
      heartbeat: random.chance(0.8),
      signal: controller.signal,
      ...(random.chance(0.2) && { maxHold: random.integer(50, 500) }),
    }
    if (random.chance(0.15))
      machine.after(random.between(0, 300), () => {
        this.#abortedAt = world.now
        controller.abort(new Aborted())
      })
  }

  async once(): Promise<void> {
    const { random, ledger, locks } = this.#around
    const { heartbeat } = this.#options
    try {
      if (random.chance(0.4)) await locks().using(this.#name, this.#options, lease => this.#work(lease))
      else {
        const lease = await locks().acquire(this.#name, this.#options)
        await this.#work(lease)
        // A holder that does not release holds until the ttl, unless it renews.
        if (heartbeat || random.chance(0.7)) await this.#release(lease)
      }
    } catch (error) {
      this.#note(error)
      if (this.#held) return
      ledger.gaveUp(this.#operation, this.#name)
      this.#checkInTime(error)
    }
  }

  /** Some work, which checks the lease from time to time. */
  async #work(lease: Lease): Promise<void> {
    const { world, machine, random, ledger, slowness = 1 } = this.#around
    const mustLast = this.#options.heartbeat === true && this.#options.maxHold === undefined
    const held = new Held(lease, this.#operation, machine, mustLast)
    this.#held = held
    ledger.handOut(held, this.#started)
    for (let steps = random.integer(0, 6); steps > 0 && ledger.check(held); steps -= 1) {
      await machine.sleep(random.between(0, 80) * slowness)
      if (random.chance(0.15)) await this.#extend(lease)
      if (!ledger.check(held)) break
      // A fault may happen between the check and the write, and the write takes time.
      if (random.chance(0.5)) await machine.sleep(random.between(0, 20))
      const delay = random.chance(0.1) ? random.between(0, 1_000) : random.between(0, 5)
      world.after(delay, () => ledger.write(held))
    }
    ledger.put(held)
  }

  async #extend(lease: Lease): Promise<void> {
    const { random, ledger, changesTtl } = this.#around
    try {
      await lease.extend(changesTtl && random.chance(0.5) ? random.pick(TTLS) : undefined)
      ledger.counts.extended += 1
    } catch (error) {
      this.#note(error)
    }
  }

  async #release(lease: Lease): Promise<void> {
    const { machine, ledger } = this.#around
    const began = machine.now()
    const wasHeld = this.#held?.isAborted === false
    const end = await lease.release()
    const took = machine.now() - began
    if (took > LONGEST_TRY + GRACE && !machine.hasStopped)
      ledger.fail(`${this.#name}: a release for a ttl of ${lease.ttl} took ${took.toFixed(1)} ms`)
    if (end === 'released') ledger.settled(this.#operation)
    else if (end === 'unknown') ledger.counts.unavailable += 1
    else {
      const { reason } = lease.signal
      if (wasHeld && reason.code === 'LEASE_LOST') ledger.wasLost(this.#operation, this.#name)
      this.#note(reason)
    }
  }

  /** A wait that ends settles at once, also if it is aborted at the same time. */
  #checkInTime(error: unknown): void {
    const { world, machine, ledger } = this.#around
    const { ttl, wait } = this.#options
    if (machine.hasStopped) return
    if (error instanceof Aborted && world.now !== this.#abortedAt)
      ledger.fail(`${this.#name}: a wait settled ${world.now - (this.#abortedAt ?? 0)} ms after it was aborted`)
    const limit = wait === 0 ? requestLimit(ttl) : wait + LAST_REQUEST
    const took = world.now - this.#started
    if (took > limit + GRACE) ledger.fail(`${this.#name}: a wait of ${wait} ms took ${took.toFixed(1)} ms`)
  }

  /** Counts the expected errors, and reports all others. */
  #note(error: unknown): void {
    const { ledger } = this.#around
    const { counts } = ledger
    if (error instanceof Aborted) counts.aborted += 1
    else if (!LeaseError.is(error)) ledger.fail(`an unexpected error: ${String(error)}`)
    else if (error.code === 'BUSY') counts.timeouts += 1
    else if (error.code === 'LEASE_LOST' || error.code === 'MAX_HOLD') counts.losses += 1
    else if (error.code === 'STORE_UNAVAILABLE' || error.code === 'OUTCOME_UNKNOWN') counts.unavailable += 1
    else if (error.code !== 'CLOSED') ledger.fail(`an unexpected error: ${error.code} ${error.message}`)
  }
}

class Aborted extends Error {}
