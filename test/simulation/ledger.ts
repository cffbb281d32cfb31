import type { Lease } from '../../src/contract/lease.ts'
import type { Busy, Claim, ClaimKey, Grant } from '../../src/contract/store.ts'
import { LONGEST_REQUEST, requestLimit, TURN } from '../../src/contract/time.ts'
import { positionLifetime } from '../../src/stores/rules/name.ts'
import type { Machine } from './machine.ts'
import { Reference } from './reference.ts'
import type { World } from './world.ts'

/** Counts of what a run showed. Over all runs, each must be high enough. */
export type Count =
  | 'grants'
  | 'keeps'
  | 'takeovers'
  | 'losses'
  | 'recovered'
  | 'refusedLate'
  | 'refusedWithdrawn'
  | 'refusedWrites'
  | 'writes'
  | 'breaks'
  | 'stops'
  | 'crashes'
  | 'timeouts'
  | 'unavailable'
  | 'aborted'
  | 'extended'
  | 'lostReplies'

/** A lease of a job. */
export class Held {
  readonly lease: Lease
  /** The number of its acquisition, which is also its note. */
  readonly operation: number
  readonly machine: Machine
  isAborted = false
  isReleased = false

  /** `mustLast`: is it renewed for as long as the store can be reached? */
  readonly mustLast: boolean

  constructor(lease: Lease, operation: number, machine: Machine, mustLast: boolean) {
    this.lease = lease
    this.operation = operation
    this.machine = machine
    this.mustLast = mustLast
  }

  /** Does its process run and believe that it holds the lease? */
  get isBelieved(): boolean {
    return !this.isAborted && !this.isReleased && this.machine.state === 'running'
  }
}

/** Milliseconds: of any lease in a run. */
export const LONGEST_TTL = 1_500

/**
 * Milliseconds for which a name may be free while claims wait for it: a waiter learns of a holder with a shorter ttl only
 * when it next renews its position, and then another waiter may be first.
 */
const LONGEST_IDLE = positionLifetime(LONGEST_TTL) / 3 + TURN + 10

/** The same after a release, of which the first waiter is notified at once. */
const LONGEST_HANDOFF = 30

/**
 * Milliseconds without faults in which somebody asks for a free name that is waited for (R15): a third of a position's
 * lifetime, a request that gets no answer, and the pause after it.
 */
const LONGEST_SILENCE = positionLifetime(LONGEST_TTL) / 3 + requestLimit(LONGEST_TTL) + 2_000

/** Milliseconds after which an abandoned claim leaves no trace, if no message is lost. */
const LONGEST_WITHDRAWAL = 50

/** A call that has not ended. */
interface Call {
  readonly name: string
  readonly machine: Machine
  /** When its last request arrived. */
  asked: number
}

interface Granted {
  readonly seq: number
  readonly token: bigint
}

/** All events of one run, and the violations among them. */
export class Ledger {
  readonly violations: string[] = []
  readonly counts: Record<Count, number>
  /** The server's clock went back: a late request may be in time again. */
  mayBeLate = false
  readonly #world: World
  readonly #reference: Reference
  readonly #live = new Map<string, Set<Held>>()
  readonly #handedOut = new Map<string, { token: bigint; at: number }[]>()
  /** When each operation was granted each token, by the server: a late copy of its request may be granted another. */
  readonly #granted = new Map<string, Granted>()
  readonly #writers = new Map<string, Granted>()
  readonly #givenUp = new Map<number, number>()
  /** Operations that cannot know of their loss, and since when: a jump of the server's clock, lost data, or a break. */
  readonly #excused = new Map<number, number>()
  /** Operations whose release was confirmed. */
  /** When the release of each operation was confirmed. */
  readonly #settled = new Map<number, number>()
  /** Operations that held until they released. */
  readonly #gaveBack = new Set<number>()
  /** No message is delivered twice. */
  isExact = false
  /** There are no faults: then a renewed lease is not lost, and waiters are served in time. */
  isCalm = false
  readonly #calls = new Map<number, Call>()
  /** By name: when it was last seen held. */
  readonly #heldAt = new Map<string, number>()
  #operations = 0
  #serverNow: () => number = () => 0

  /** Without `judgesAnswers` only events of processes and resources count, not the server's replies. */
  constructor(world: World, judgesAnswers = true) {
    this.#world = world
    this.#reference = new Reference(what => judgesAnswers && this.fail(what))
    this.counts = {
      grants: 0,
      keeps: 0,
      takeovers: 0,
      losses: 0,
      recovered: 0,
      refusedLate: 0,
      refusedWithdrawn: 0,
      refusedWrites: 0,
      writes: 0,
      breaks: 0,
      stops: 0,
      crashes: 0,
      timeouts: 0,
      unavailable: 0,
      aborted: 0,
      extended: 0,
      lostReplies: 0,
    }
  }

  /** The clock by which leases expire. */
  set serverNow(now: () => number) {
    this.#serverNow = now
  }

  fail(what: string): void {
    this.violations.push(`at ${this.#world.now.toFixed(1)} ms: ${what}`)
  }

  /** The number of a new acquisition. */
  begin(name: string, machine: Machine): number {
    this.#operations += 1
    this.#calls.set(this.#operations, { name, machine, asked: this.#world.now })
    return this.#operations
  }

  /** The caller was notified that it holds no lease. */
  gaveUp(operation: number, name: string): void {
    this.#givenUp.set(operation, this.#world.now)
    this.#calls.delete(operation)
    if (!this.isCalm) return
    this.#world.after(LONGEST_WITHDRAWAL, () => {
      if (this.#reference.knows(name, String(operation), this.#serverNow()))
        this.fail(`${name}: ${operation} holds or waits although it was given up`)
    })
  }

  /** A release was confirmed: no event of this operation may follow. */
  settled(operation: number): void {
    this.#settled.set(operation, this.#world.now)
  }

  /** A release reported that the lease had been lost before. */
  wasLost(operation: number, name: string): void {
    if (this.isExact && this.#gaveBack.has(operation))
      this.fail(`${name}: ${operation} held until it released, and was told that it did not`)
  }

  /** A renewal was sent. Call the returned function when its reply arrives: from then on the process knows of a loss. */
  asks(operation: number): () => void {
    const sent = this.#world.now
    return () => {
      if (sent > (this.#excused.get(operation) ?? Number.POSITIVE_INFINITY)) this.#excused.delete(operation)
    }
  }

  /** A call that began at `started` returned a lease. */
  handOut(held: Held, started: number): void {
    const { name, token } = held.lease
    this.#calls.delete(held.operation)
    const earlier = this.#handedOut.get(name) ?? []
    for (const other of earlier) {
      if (other.token === token) this.fail(`${name}: token ${token} was handed out twice`)
      if (other.at < started && other.token > token)
        this.fail(`${name}: token ${token} was handed out after ${other.token}`)
    }
    earlier.push({ token, at: this.#world.now })
    this.#handedOut.set(name, earlier)
    const live = this.#live.get(name) ?? new Set()
    this.#live.set(name, live.add(held))
    held.lease.signal.addEventListener('abort', () => this.#abort(held))
    if (!this.check(held) && held.lease.signal.reason.code === 'LEASE_LOST')
      this.fail(`${name}: ${held.operation} was handed out when its time was over`)
  }

  /** Checks what the lease reports now, and returns it. */
  check(held: Held): boolean {
    const { lease, operation } = held
    try {
      lease.assertHeld()
    } catch {
      return false
    }
    if (!this.#isHolder(held) && !this.#excused.has(operation))
      this.fail(`${lease.name}: ${operation} is told that it holds, and it does not by the server`)
    return true
  }

  /** Checks that somebody asks for each free name that is waited for. There have been no faults since `since`. */
  checkWaiters(since: number): void {
    const { now } = this.#world
    const asked = new Map<string, number>()
    for (const call of this.#calls.values()) {
      if (call.machine.state !== 'running') call.asked = now // it asks when it is resumed
      asked.set(call.name, Math.max(call.asked, asked.get(call.name) ?? 0))
    }
    for (const [name, last] of asked) {
      if (this.#reference.holder(name, this.#serverNow())) this.#heldAt.set(name, now)
      const silence = now - Math.max(since, last, this.#heldAt.get(name) ?? 0)
      if (silence > LONGEST_SILENCE) this.fail(`${name}: nobody who waits for it has asked for ${silence} ms`)
    }
  }

  /** Checks all leases of a machine when it is resumed. */
  checkAll(machine: Machine): void {
    for (const live of this.#live.values())
      for (const held of live) if (held.machine === machine && !held.isReleased) this.check(held)
  }

  /** The holder has finished with the lease. */
  put(held: Held): void {
    held.isReleased = true
    this.#live.get(held.lease.name)?.delete(held)
  }

  /** A write arrives at the resource, which knows the highest token seen. */
  write(held: Held): void {
    const { name, token } = held.lease
    const own = this.#granted.get(`${held.operation} ${token}`)
    const last = this.#writers.get(name)
    if (last && token < last.token) {
      this.counts.refusedWrites += 1
      if (this.#isHolder(held)) this.fail(`${name}: a write of its holder was refused`)
      return
    }
    this.counts.writes += 1
    if (!own || (last && own.seq < last.seq)) this.fail(`${name}: a write of an older holder came after a newer one's`)
    this.#writers.set(name, { seq: own?.seq ?? 0, token })
  }

  acquired(claim: Claim, answer: Grant | Busy, now: number): void {
    const operation = Number(claim.note)
    const call = this.#calls.get(operation)
    if (call) call.asked = this.#world.now
    if (!answer.held && this.#reference.isWithdrawn(claim, now)) this.counts.refusedWithdrawn += 1
    const grant = this.#reference.acquired(claim, answer, now)
    if (!answer.held) return
    if (!grant) {
      this.counts.recovered += 1
      return
    }
    const { idle, wasReleased } = grant
    if (this.isCalm && idle > (wasReleased ? LONGEST_HANDOFF : LONGEST_IDLE))
      this.fail(`${claim.name}: it was free for ${idle.toFixed(1)} ms although it was waited for`)
    this.counts.grants += 1
    const late = this.#world.now - (this.#givenUp.get(operation) ?? Number.POSITIVE_INFINITY)
    if (late > requestLimit(claim.ttl) + 20 && !this.mayBeLate)
      this.fail(
        `${claim.name}: ${operation} was granted ${late.toFixed(1)} ms after its caller was told that it is not`,
      )
    // Since the clock was set back, a request that was delayed for longer than a withdrawn claim is refused is not late.
    const settledFor = this.#world.now - (this.#settled.get(operation) ?? Number.POSITIVE_INFINITY)
    if (settledFor >= 0 && this.isExact && !(this.mayBeLate && settledFor > LONGEST_REQUEST))
      this.fail(`${claim.name}: ${operation} was granted after its release was confirmed`)
    this.#granted.set(`${operation} ${answer.token}`, { seq: this.counts.grants, token: answer.token })
    for (const held of this.#live.get(claim.name) ?? []) {
      if (held.operation === operation) continue
      if (held.isBelieved && !this.#excused.has(held.operation))
        this.fail(`${claim.name}: granted to ${operation} while ${held.operation} believes to hold it`)
      this.counts.takeovers += 1
    }
  }

  renewed(claim: Claim, answer: Grant | undefined, now: number): void {
    this.#reference.renewed(claim, answer, now)
  }

  annotated({ name }: Claim, now: number): void {
    this.#reference.seen(name, now)
  }

  released(key: ClaimKey, answer: 'released' | 'gone', now: number): void {
    const holder = this.#reference.holder(key.name, now)
    if (holder?.id === key.id) this.#gaveBack.add(Number(holder.note))
    this.#reference.released(key, answer, now)
  }

  broken(name: string, of: bigint | undefined, token: bigint | undefined, now: number): void {
    const holder = this.#reference.holder(name, now)
    if (holder && (of ?? BigInt(holder.token)) === BigInt(holder.token))
      this.#excused.set(Number(holder.note), this.#world.now)
    if (token !== undefined) this.counts.breaks += 1
    this.#reference.broken(name, of, token, now)
  }

  /** Leases expire earlier than their holders can know. */
  leapt(): void {
    for (let operation = 1; operation <= this.#operations; operation += 1) this.#excused.set(operation, this.#world.now)
  }

  forgot(): void {
    this.leapt()
    this.#settled.clear()
    this.#reference.forgot()
  }

  #abort(held: Held): void {
    const { lease, mustLast, isReleased } = held
    held.isAborted = true
    if (this.isCalm && mustLast && !isReleased && lease.signal.reason.code === 'LEASE_LOST')
      this.fail(`${lease.name}: ${held.operation} was lost although nothing was wrong`)
  }

  /** By the server. */
  #isHolder({ lease, operation }: Held): boolean {
    const holder = this.#reference.holder(lease.name, this.#serverNow())
    return holder?.note === String(operation) && BigInt(holder.token) === lease.token
  }

  /** Names that are held or waited for by the server. */
  left(): string[] {
    return this.#reference.left(this.#serverNow())
  }
}
