import type { Log } from '../job.ts'
import { type Held, LONGEST_TTL } from '../ledger.ts'
import type { Machine } from '../machine.ts'
import type { World } from '../world.ts'

/** What may be seen in a run, as numbers; each must be seen often enough over all runs. */
const counted = [
  'answers',
  'grants',
  'secondRounds',
  'ties',
  'takeovers',
  'losses',
  'restored',
  'quarantined',
  'forgotten',
  'restarts',
  'stops',
  'crashes',
  'steps',
  'breaks',
  'refusedLate',
  'refusedWithdrawn',
  'writes',
  'refusedWrites',
  'timeouts',
  'unavailable',
  'aborted',
  'extended',
  'notes',
  'lostReplies',
] as const
export type Count = (typeof counted)[number]

/** Milliseconds for which a name may be free while it is waited for, when nothing goes wrong. */
const LONGEST_IDLE = 600

/** Milliseconds after which nothing is left of a claim that was given up, when nothing goes wrong. */
const LONGEST_WITHDRAWAL = 50

/** What a name was granted, and when. */
interface Granted {
  readonly token: bigint
  readonly at: number
  /** Of a claim, or of an operation. */
  readonly of: unknown
}

interface Name {
  /** What jobs were given, in order. */
  readonly handedOut: Granted[]
  /** What stores answered, by claim. */
  readonly granted: Granted[]
  /** What breaks answered. */
  readonly broken: Omit<Granted, 'of'>[]
  readonly live: Set<Held>
  /** Whose write was the last that the resource took. */
  writer: Held | undefined
  /** The latest that a holder can have held until. */
  freeAt: number
  /** It was taken from who held it, or may have been. */
  isBroken: boolean
}

/** All that jobs and resources saw in one run, and what of it must not have been. */
export class Ledger implements Log {
  readonly violations: string[] = []
  readonly counts: Record<Count, number> = Object.fromEntries(counted.map(name => [name, 0])) as Record<Count, number>
  /** May no two believe to hold a name at once? */
  isExclusive = true
  /** Nothing goes wrong. */
  isCalm = false
  /** Names of which no lease that is renewed may be lost. */
  steady: readonly string[] = []
  /** Does no server forget, and no clock jump? Then a lease that is told to be held is held by a majority. */
  isTold = false
  /** Asks all servers whether they know of the claim of this operation. */
  knows: (name: string, operation: string) => boolean = () => false
  /** Asks a majority of them whether it holds. */
  holds: (name: string, operation: string) => boolean = () => true
  readonly #world: World
  readonly #names = new Map<string, Name>()
  /** When they were asked for, and given. */
  readonly #times = new Map<Held, { readonly started: number; readonly at: number }>()
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

  gaveUp(operation: number, name: string): void {
    if (!this.isCalm) return
    this.#world.after(LONGEST_WITHDRAWAL, () => {
      if (this.knows(name, String(operation)))
        this.fail(`${name}: ${operation} holds or waits although it was given up`)
    })
  }

  handOut(held: Held, started: number): void {
    const { lease, operation } = held
    const { name, token } = lease
    const state = this.#at(name)
    this.counts.grants += 1
    this.#rises(name, 'handed out', state.handedOut, { token, at: this.#world.now, of: operation }, started)
    for (const other of state.live) {
      this.counts.takeovers += 1
      if (this.#isJudged(name) && other.isBelieved && isSaidToHold(other))
        this.fail(`${name}: handed out to ${operation} while ${other.operation} believes to hold it`)
    }
    const idle = this.#world.now - Math.max(state.freeAt, started)
    if (this.isCalm && idle > LONGEST_IDLE)
      this.fail(`${name}: it was free for ${idle.toFixed(1)} ms although it was waited for`)
    state.live.add(held)
    this.#times.set(held, { started, at: this.#world.now })
    lease.signal.addEventListener('abort', () => this.#abort(held))
    if (!this.check(held) && lease.signal.reason.code === 'LEASE_LOST')
      this.fail(`${name}: ${operation} was handed out when its time was over`)
  }

  check(held: Held): boolean {
    const { lease, operation } = held
    if (!isSaidToHold(held)) return false
    const last = this.#at(lease.name).handedOut.at(-1)
    if (this.#isJudged(lease.name) && last?.of !== operation)
      this.fail(`${lease.name}: ${operation} is told that it holds after it was handed out to ${last?.of}`)
    if (this.isTold && this.#isJudged(lease.name) && !this.holds(lease.name, String(operation)))
      this.fail(`${lease.name}: ${operation} is told that it holds, and no majority knows of it`)
    return true
  }

  /** All leases of a machine, at the moment when it runs again. */
  checkAll(machine: Machine): void {
    for (const { live } of this.#names.values())
      for (const held of live) if (held.machine === machine && !held.isReleased) this.check(held)
  }

  put(held: Held): void {
    const { lease } = held
    const state = this.#at(lease.name)
    held.isReleased = true
    state.live.delete(held)
    // Who holds for a fixed term may forget to release: then it must run out.
    const rest = held.mustLast ? 0 : LONGEST_TTL
    state.freeAt = Math.max(state.freeAt, this.#world.now + rest)
  }

  write(held: Held): void {
    const { name, token } = held.lease
    const state = this.#at(name)
    const { writer } = state
    if (writer && token < writer.lease.token) {
      this.counts.refusedWrites += 1
      if (this.#isJudged(name) && held.isBelieved && isSaidToHold(held))
        this.fail(`${name}: a write of its holder was refused`)
      return
    }
    this.counts.writes += 1
    const [own, last] = [this.#times.get(held), writer && this.#times.get(writer)]
    if (own && last && own.at < last.started) this.fail(`${name}: a write of an older holder came after a newer one's`)
    state.writer = held
  }

  settled(): void {}

  wasLost(operation: number, name: string): void {
    if (this.isCalm) this.fail(`${name}: ${operation} held until it released, and was told that it did not`)
  }

  /** A store answered a claim that it holds, to a request that was made at `asked`. */
  granted(name: string, id: string, token: bigint, asked: number): void {
    const { granted, broken } = this.#at(name)
    this.counts.answers += 1
    this.#rises(name, 'granted', granted, { token, at: this.#world.now, of: id }, asked)
    for (const other of broken)
      if (other.at < asked && other.token >= token)
        this.fail(`${name}: token ${token} was granted after ${other.token} was answered by a break`)
  }

  /** From now on nobody may know that it holds. */
  breaks(name: string): void {
    this.#at(name).isBroken = true
  }

  /** A break that began at `asked` answered a token. */
  broke(name: string, token: bigint, asked: number): void {
    this.counts.breaks += 1
    const { granted, broken } = this.#at(name)
    for (const other of granted)
      if (other.at < asked && other.token >= token)
        this.fail(`${name}: ${token} was answered by a break after ${other.token} was granted`)
    broken.push({ token, at: this.#world.now })
  }

  #rises(name: string, how: string, earlier: Granted[], now: Granted, began: number): void {
    for (const { token, at, of } of earlier) {
      if (of !== now.of && token === now.token) this.fail(`${name}: token ${token} was ${how} twice`)
      if (at < began && token > now.token) this.fail(`${name}: token ${now.token} was ${how} after ${token}`)
    }
    earlier.push(now)
  }

  #abort(held: Held): void {
    const { lease, mustLast, isReleased } = held
    held.isAborted = true
    if (!mustLast || isReleased || lease.signal.reason.code !== 'LEASE_LOST') return
    if (this.isCalm || this.steady.includes(lease.name))
      this.fail(`${lease.name}: ${held.operation} was lost although a majority was well`)
  }

  #isJudged(name: string): boolean {
    return this.isExclusive && !this.#at(name).isBroken
  }

  #at(name: string): Name {
    let state = this.#names.get(name)
    if (!state) {
      state = { handedOut: [], granted: [], broken: [], live: new Set(), writer: undefined, freeAt: 0, isBroken: false }
      this.#names.set(name, state)
    }
    return state
  }
}

function isSaidToHold({ lease }: Held): boolean {
  try {
    lease.assertHeld()
    return true
  } catch {
    return false
  }
}
