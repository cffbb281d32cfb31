import { LeaseError } from '../../src/contract/errors.ts'
import type { Lease } from '../../src/contract/lease.ts'
import { LAST_REQUEST, LONGEST_TRY, requestLimit } from '../../src/contract/time.ts'
import type { Locks } from '../../src/core/locks.ts'
import type { AcquireOptions } from '../../src/core/options.ts'
import { Held, LONGEST_TTL } from './ledger.ts'
import type { Machine } from './machine.ts'
import type { Random } from './random.ts'
import type { World } from './world.ts'

const TTLS = [60, 100, 150, 300, 600, LONGEST_TTL]
const WAITS = [0, 0, 40, 200, 1_000, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]

/** Milliseconds for which a call may go on after its time is over: clocks differ by as much. */
const GRACE = 20

/** Where a job tells what happens to it, and is checked. */
export interface Log {
  readonly counts: Record<'timeouts' | 'losses' | 'unavailable' | 'aborted' | 'extended', number>
  /** The number of a new acquisition. */
  begin(): number
  /** The caller was told that it holds nothing. */
  gaveUp(operation: number, name: string): void
  /** The caller was given a lease, by a call that began at `started`. */
  handOut(held: Held, started: number): void
  /** What the lease says at this moment must be so. Answers what it says. */
  check(held: Held): boolean
  /** A write that arrives at the resource, which knows the highest token that it has seen. */
  write(held: Held): void
  /** The holder is done with it. */
  put(held: Held): void
  /** A release was confirmed. */
  settled(operation: number): void
  /** A release of what was held so far said that it was lost before. */
  wasLost(operation: number, name: string): void
  fail(what: string): void
}

/** What a job needs of the world it lives in. */
export interface Surroundings {
  readonly world: World
  readonly machine: Machine
  readonly random: Random
  readonly ledger: Log
  readonly names: readonly string[]
  /** May it extend a lease for another ttl? */
  readonly changesTtl: boolean
  /** The locks of its process, which may be closed and opened anew. */
  locks(): Locks
  isOver(): boolean
}

/** Acquires, works, writes to the resource and lets go, again and again, in ever other ways. */
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
    this.#operation = ledger.begin()
    this.#name = random.pick(names)
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
      if (random.chance(0.4)) await locks().using(this.#name, lease => this.#work(lease), this.#options)
      else {
        const lease = await locks().acquire(this.#name, this.#options)
        await this.#work(lease)
        // Who forgets to release holds until the ttl, if nothing renews.
        if (heartbeat || random.chance(0.7)) await this.#release(lease)
      }
    } catch (error) {
      this.#note(error)
      if (this.#held) return
      ledger.gaveUp(this.#operation, this.#name)
      this.#checkInTime(error)
    }
  }

  /** Some work, which looks now and then whether it may go on, and is told so. */
  async #work(lease: Lease): Promise<void> {
    const { world, machine, random, ledger } = this.#around
    const mustLast = this.#options.heartbeat === true && this.#options.maxHold === undefined
    const held = new Held(lease, this.#operation, machine, mustLast)
    this.#held = held
    ledger.handOut(held, this.#started)
    for (let steps = random.integer(0, 6); steps > 0 && ledger.check(held); steps -= 1) {
      await machine.sleep(random.between(0, 80))
      if (random.chance(0.15)) await this.#extend(lease)
      if (!ledger.check(held)) break
      // Between the look and the write anything may happen, and the write itself takes its time.
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

  /** A wait that is over settles at once, and one that was aborted in the very same moment. */
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

  /** Counts the errors that may come, and tells of the others. */
  #note(error: unknown): void {
    const { ledger } = this.#around
    const { counts } = ledger
    if (error instanceof Aborted) counts.aborted += 1
    else if (!LeaseError.is(error)) ledger.fail(`an unexpected error: ${String(error)}`)
    else if (error.code === 'ACQUIRE_TIMEOUT') counts.timeouts += 1
    else if (error.code === 'LEASE_LOST' || error.code === 'MAX_HOLD') counts.losses += 1
    else if (error.code === 'STORE_UNAVAILABLE' || error.code === 'OUTCOME_UNKNOWN') counts.unavailable += 1
    else if (error.code !== 'CLOSED') ledger.fail(`an unexpected error: ${error.code} ${error.message}`)
  }
}

class Aborted extends Error {}
