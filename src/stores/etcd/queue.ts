import { LeaseError } from '../../contract/errors.ts'
import { backoff, type Pauses } from '../../contract/request.ts'
import { inRootContext } from '../../contract/root-context.ts'
import type { Wake } from '../../contract/store.ts'
import { type Clock, turnAfter } from '../../contract/time.ts'
import { mayTake, roundTrips } from '../shared/queue.ts'
import type { Gateway } from './gateway.ts'
import type { Keys } from './keys.ts'
import type { KeyValue, WatchAnswer } from './messages.ts'
import { roundTripAt } from './record.ts'
import type { KeepAlive, Survey } from './requests.ts'
import { openWatch, type Watch } from './watch.ts'

/** A claim of this process in the queue of a name. */
export interface Waiter {
  readonly lease: string
  /** The create revision of its key in the queue. */
  readonly revision: string
  /** The last keepalive of its lease, for whose ttl it keeps its position, and when that was sent. */
  beat: KeepAlive
  beatAt: number
  /** As of its last request: the waiters ahead of it, and since when the name is free, if it is. */
  ahead: number
  /** What the round trips of those add to their grace periods. */
  roundTrips: number
  freeSince: number | undefined
  askedAt: number
  /** The keepalive in flight. */
  beating?: Promise<KeepAlive> | undefined
  /** Was a request that may have acquired the name not answered? */
  mayHold?: boolean
}

/** May the waiter take the name: is it free as far as is known, and the grace period of those ahead over? */
export function isTurn({ freeSince, ahead, roundTrips }: Waiter, now: number): boolean {
  return freeSince !== undefined && mayTake(now, freeSince + roundTrips, ahead)
}

/** Of a waiter in the queue. */
interface Position {
  /** The create revision of its key. */
  readonly revision: string
  readonly roundTrip: number
}

/** The state of a name, as far as its watch has reported it. */
export interface View {
  readonly held: KeyValue | undefined
  readonly freeSince: number
  readonly ahead: number
  readonly roundTrips: number
}

/** Milliseconds before a watch is opened again. */
const PAUSES: Pauses = [50, 2_000]

/** Milliseconds that a watch may lag behind an answer of the server. After that it must have missed events. */
const LONGEST_LAG = 1_000

/** From this many waiters of this process on one name on, they share the answers of the server. */
const CROWD = 100

/** Milliseconds for which the watch of a name stays open after the last waiter here has left. */
const LINGER = 2_000

/**
 * The holder and the queue of one name, followed by one watch for all waiters of this process: over HTTP/1.1 each watch
 * is a connection. It is a hint: only the server grants. It wakes the first waiter, and each other one of this process when
 * the grace periods of those ahead are over.
 */
export class Queue {
  readonly waiters: Map<string, Waiter> = new Map()
  readonly #gateway: Gateway
  readonly #keys: Keys
  readonly #name: string
  readonly #clock: Clock
  readonly #onEnd: () => void
  readonly #wakes = new Map<string, Wake>()
  #opening: Promise<void> | undefined
  #watch: Watch | undefined
  /** Events of former watches do not count. */
  #attempt: object | undefined
  #isReady = false
  #revision = 0n
  /** The last comparison with the server, and when that began. */
  #checking: Promise<boolean> | undefined
  #checkedAt = 0
  #held: KeyValue | undefined
  #freeSince = 0
  /** By id, the queue in order. */
  #positions = new Map<string, Position>()
  /** The waiters that were woken since the name is free, each with the number of those ahead of it then. */
  readonly #woken = new Map<string, number>()
  #lingering: NodeJS.Timeout | undefined
  #again: NodeJS.Timeout | undefined
  /** Until the next waiter of this process may take the name although others are ahead. */
  #turn: NodeJS.Timeout | undefined
  #isOver = false

  constructor(gateway: Gateway, keys: Keys, name: string, clock: Clock, onEnd: () => void) {
    this.#gateway = gateway
    this.#keys = keys
    this.#name = name
    this.#clock = clock
    this.#onEnd = onEnd
  }

  get isReady(): boolean {
    return this.#isReady
  }

  /** `undefined`: this position is not known here, so ask the server. Fewer may be ahead of it by now, never more. */
  view(id: string, revision: string): View | undefined {
    if (!this.#isReady || this.#positions.get(id)?.revision !== revision) return undefined
    const ahead = this.#aheadOf(id)
    return {
      held: this.#held,
      freeSince: this.#freeSince,
      ahead,
      roundTrips: roundTrips(this.#positions.values(), ahead),
    }
  }

  /**
   * Has the watch reported what the server says now? In a crowd the server is asked once a second for all, because it
   * takes time to count each waiter. A watch that keeps lagging is replaced.
   */
  async agrees(survey: () => Promise<Survey>): Promise<boolean> {
    if (!this.#isReady) return false
    if (this.waiters.size < CROWD) return this.#agreesWith(await survey())
    const now = this.#clock.now()
    if (!this.#checking || now > this.#checkedAt + LONGEST_LAG) {
      this.#checkedAt = now
      this.#checking = survey().then(found => this.#agreesWith(found))
      this.#checking.catch(() => {
        this.#checking = undefined
      })
    }
    await this.#checking
    return this.#isReady
  }

  #agreesWith({ held, waiting }: Survey): boolean {
    if (held?.create_revision === this.#held?.create_revision && waiting === this.#positions.size) return true
    const before = this.#revision
    const look = (): void => {
      if (this.#isReady && this.#revision === before) this.#lose()
    }
    setTimeout(look, LONGEST_LAG).unref()
    return false
  }

  join(id: string, waiter: Waiter): void {
    this.waiters.set(id, waiter)
    this.open().catch(() => {}) // `watch` rejects with it
  }

  /** The claim holds, was withdrawn, or is about to join again. Its watch ends by its signal. */
  leave(id: string): void {
    this.waiters.delete(id)
    this.#linger()
  }

  /** Resolves once the watch is open. From then until `signal` aborts, `wake` is called as a hint. */
  async watch(id: string, wake: Wake, signal: AbortSignal): Promise<void> {
    this.#wakes.set(id, wake)
    const forget = (): void => {
      if (this.#wakes.get(id) === wake) this.#wakes.delete(id)
      this.#linger()
    }
    signal.addEventListener('abort', forget, { once: true })
    try {
      await this.open()
    } catch (error) {
      forget()
      throw error
    }
    if (signal.aborted) forget()
    this.#woken.delete(id)
    this.#wakeNext()
  }

  /** Resolves once the watch is open. */
  open(): Promise<void> {
    if (this.#opening) return this.#opening
    const opening = inRootContext(() => this.#open()).catch(error => {
      if (this.#opening === opening) this.#opening = undefined
      throw error
    })
    this.#opening = opening
    return opening
  }

  end(): void {
    this.#isOver = true
    this.#isReady = false
    clearTimeout(this.#lingering)
    clearTimeout(this.#turn)
    this.#watch?.end()
    this.#wakes.clear()
  }

  async #open(): Promise<void> {
    this.#linger()
    const range = this.#keys.all(this.#name)
    const { header, kvs = [] } = await this.#gateway.range(range)
    const sorted = kvs.toSorted((a, b) => (BigInt(a.create_revision) < BigInt(b.create_revision) ? -1 : 1))
    this.#held = undefined
    this.#freeSince = this.#clock.now()
    this.#positions = new Map()
    for (const found of sorted) this.#put(found)
    const next = BigInt(header.revision) + 1n
    this.#revision = next - 1n
    const attempt = {}
    this.#attempt = attempt
    const watch = await openWatch(
      this.#gateway,
      { ...range, start_revision: next.toString() },
      {
        onEvents: (events, revision) => {
          if (this.#attempt === attempt) this.#apply(events, revision)
        },
        onEnd: () => {
          if (this.#attempt === attempt && this.#isReady) this.#lose()
        },
      },
    )
    if (watch.isOver()) throw new LeaseError('OUTCOME_UNKNOWN', 'the watch ended as it began')
    this.#watch = watch
    if (this.#isOver) return this.end()
    this.#isReady = true
    this.#woken.clear()
    this.#wakeNext()
  }

  #apply(events: NonNullable<WatchAnswer['events']>, revision: bigint): void {
    for (const { type, kv } of events) {
      if (type === 'DELETE') this.#remove(kv.key)
      else this.#put(kv)
    }
    this.#revision = revision
    this.#wakeNext()
  }

  #put(found: KeyValue): void {
    const { id } = this.#keys.parse(found.key)
    if (id !== undefined) this.#positions.set(id, { revision: found.create_revision, roundTrip: roundTripAt(found) })
    else {
      this.#held = found
      this.#woken.clear()
      // When the name falls free again, the grace periods begin anew.
      for (const waiter of this.waiters.values()) waiter.freeSince = undefined
    }
  }

  #remove(key: string): void {
    const { id } = this.#keys.parse(key)
    if (id !== undefined) this.#positions.delete(id)
    else {
      this.#held = undefined
      this.#freeSince = this.#clock.now()
    }
  }

  #wakeNext(): void {
    clearTimeout(this.#turn)
    if (this.#held || !this.#isReady) return
    let ahead = 0
    for (const id of this.#positions.keys()) {
      const wake = this.#wakes.get(id)
      if (wake && this.#woken.get(id) !== ahead) {
        const delay =
          this.#freeSince + turnAfter(ahead) + roundTrips(this.#positions.values(), ahead) - this.#clock.now()
        if (ahead > 0 && delay > 0) {
          this.#turn = setTimeout(() => this.#wakeNext(), delay).unref()
          return
        }
        this.#woken.set(id, ahead)
        wake()
      }
      ahead += 1
    }
  }

  #aheadOf(id: string): number {
    let ahead = 0
    for (const other of this.#positions.keys()) {
      if (other === id) break
      ahead += 1
    }
    return ahead
  }

  /** Events were lost: the watch is opened again, and everything read again. */
  #lose(): void {
    this.#isReady = false
    this.#checking = undefined
    this.#opening = undefined
    this.#attempt = undefined
    this.#watch?.end()
    this.#watch = undefined
    this.#openAgain(1)
  }

  #openAgain(failures: number): void {
    const again = (): void => {
      if (this.#isOver || this.#gateway.isClosed) return
      this.open().catch(() => this.#openAgain(failures + 1))
    }
    clearTimeout(this.#again)
    this.#again = setTimeout(again, backoff(failures, Math.random, PAUSES)).unref()
  }

  /** Ends some time after the last waiter here. Claims that no longer ask have lapsed. */
  #linger(): void {
    if (this.#lingering) return
    const look = (): void => {
      this.#lingering = undefined
      const now = this.#clock.now()
      for (const [id, { askedAt, beat }] of this.waiters) if (now > askedAt + 2 * beat.ttl) this.waiters.delete(id)
      if (this.waiters.size > 0 || this.#wakes.size > 0) this.#linger()
      else {
        this.end()
        this.#onEnd()
      }
    }
    this.#lingering = inRootContext(() => setTimeout(look, LINGER)).unref()
  }
}
