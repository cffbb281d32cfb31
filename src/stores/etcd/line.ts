import { LeaseError } from '../../contract/errors.ts'
import type { Wake } from '../../contract/store.ts'
import { type Clock, LONGEST_REQUEST, TURN } from '../../contract/time.ts'
import { mayTake } from '../shared/queue.ts'
import { failure } from './failure.ts'
import type { Gateway } from './gateway.ts'
import type { Keys } from './keys.ts'
import type { KeyValue, WatchAnswer } from './messages.ts'
import type { Beat } from './shared.ts'

/** A claim of this process in the line of a name. */
export interface Waiter {
  readonly lease: string
  /** The create revision of its place. */
  readonly revision: string
  /** What its lease was last granted, which is how long it keeps its place, and when that was asked for. */
  beat: Beat
  beatAt: number
  /** How many stood before it when it last asked the server, and since when the name is free if it was then. */
  ahead: number
  freeSince: number | undefined
  askedAt: number
}

/** Is the name free, as far as is known, and the turn come of those before this one? */
export function isTurn({ freeSince, ahead }: Waiter, now: number): boolean {
  return freeSince !== undefined && mayTake(now, freeSince, ahead)
}

/** How a name stands, as far as its watch has heard. */
export interface View {
  readonly held: KeyValue | undefined
  readonly freeSince: number
  readonly ahead: number
}

/** Milliseconds before a watch is opened again; random, and doubled by each failure up to the longest. */
const SHORTEST_PAUSE = 50
const LONGEST_PAUSE = 2_000

/** Milliseconds that a watch may be behind what the server answered; then it must have missed something. */
const LONGEST_LAG = 1_000

/** Milliseconds for which a name is watched on when nobody here waits for it any more. */
const LINGER = 2_000

/**
 * The line of one name, followed by one watch however many wait here: who holds, and who waits in what order. It is a
 * hint; a grant is the server's alone. A wake is for the first of the waiters, and for the first of this process when
 * those before it have not taken their turns.
 */
export class Line {
  readonly waiters: Map<string, Waiter> = new Map()
  readonly #gateway: Gateway
  readonly #keys: Keys
  readonly #name: string
  readonly #clock: Clock
  readonly #onEnd: () => void
  readonly #wakes = new Map<string, Wake>()
  #opening: Promise<void> | undefined
  #endStream: (() => void) | undefined
  #isReady = false
  #revision = 0n
  #held: KeyValue | undefined
  #freeSince = 0
  /** The ids in line, in order, and the create revisions of their places. */
  #places = new Map<string, string>()
  /** Who was told that the name is free. */
  #told: string | undefined
  #lingering: NodeJS.Timeout | undefined
  #again: NodeJS.Timeout | undefined
  /** Until the turn of the first of this process comes, if those before it do not take theirs. */
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

  /**
   * `undefined`: nobody here knows of this place, so the server must be asked. There may be fewer before it by now, and
   * never more.
   */
  view(id: string, revision: string): View | undefined {
    if (!this.#isReady || this.#places.get(id) !== revision) return undefined
    return { held: this.#held, freeSince: this.#freeSince, ahead: this.#aheadOf(id) }
  }

  /** Has the watch heard all that the server says? One that stays behind is opened anew. */
  agrees(held: KeyValue | undefined, waiting: number): boolean {
    if (!this.#isReady) return false
    if (held?.create_revision === this.#held?.create_revision && waiting === this.#places.size) return true
    const before = this.#revision
    const look = (): void => {
      if (this.#isReady && this.#revision === before) this.#lose()
    }
    setTimeout(look, LONGEST_LAG).unref()
    return false
  }

  join(id: string, waiter: Waiter): void {
    this.waiters.set(id, waiter)
    this.open().catch(() => {}) // whoever watches hears of it
  }

  /** It holds, was withdrawn, or is about to join anew; who watches for it stops that by the signal. */
  leave(id: string): void {
    this.waiters.delete(id)
    this.#linger()
  }

  /** Resolves once it is followed; from then until `signal` aborts, `wake` is called as a hint. */
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
    this.#told = undefined
    this.#tell()
  }

  /** Resolves once it is followed. */
  open(): Promise<void> {
    if (this.#opening) return this.#opening
    const opening = this.#open().catch(error => {
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
    this.#endStream?.()
    this.#wakes.clear()
  }

  async #open(): Promise<void> {
    this.#linger()
    const range = this.#keys.all(this.#name)
    const { header, kvs = [] } = await this.#gateway.range(range)
    const sorted = kvs.toSorted((a, b) => (BigInt(a.create_revision) < BigInt(b.create_revision) ? -1 : 1))
    this.#held = undefined
    this.#freeSince = this.#clock.now()
    this.#places = new Map()
    for (const found of sorted) this.#put(found)
    const next = BigInt(header.revision) + 1n
    this.#revision = next - 1n
    await this.#follow({ ...range, start_revision: next.toString() })
    if (this.#isOver) return this.end()
    if (!this.#endStream) throw new LeaseError('OUTCOME_UNKNOWN', 'the watch ended as it began')
    this.#isReady = true
    this.#told = undefined
    this.#tell()
  }

  #follow(create_request: object): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const onSilence = (): void => {
      end()
      fail(new LeaseError('OUTCOME_UNKNOWN', 'etcd did not open the watch in time'))
    }
    const timeout = setTimeout(onSilence, LONGEST_REQUEST).unref()
    let isOver = false
    const fail = (error: Error): void => {
      isOver = true
      clearTimeout(timeout)
      reject(failure(error, true))
      if (this.#endStream !== end) return
      this.#endStream = undefined
      if (this.#isReady) this.#lose()
    }
    let end = (): void => {}
    const opened = this.#gateway.stream(
      'watch',
      { create_request },
      {
        onMessage: message => {
          const { created, canceled, compact_revision, events = [], header } = message as WatchAnswer
          if (canceled) {
            end()
            fail(
              new Error(compact_revision ? `revisions up to ${compact_revision} are compacted` : 'the watch was ended'),
            )
          } else if (created) {
            clearTimeout(timeout)
            resolve()
          } else if (this.#endStream === end) this.#hear(events, BigInt(header.revision))
        },
        onEnd: () => fail(new Error('the watch ended')),
        onFailure: fail,
      },
    )
    opened.then(giveUp => {
      end = giveUp
      if (isOver || this.#isOver) giveUp()
      else this.#endStream = giveUp
    }, fail)
    return promise
  }

  #hear(events: WatchAnswer['events'] = [], revision: bigint): void {
    for (const { type, kv } of events) {
      if (type === 'DELETE') this.#remove(kv.key)
      else this.#put(kv)
    }
    this.#revision = revision
    this.#tell()
  }

  #put(found: KeyValue): void {
    const { id } = this.#keys.parse(found.key)
    if (id !== undefined) this.#places.set(id, found.create_revision)
    else {
      this.#held = found
      this.#told = undefined
      // Since then it was held: when it falls free again the turns of those before them begin anew.
      for (const waiter of this.waiters.values()) waiter.freeSince = undefined
    }
  }

  #remove(key: string): void {
    const { id } = this.#keys.parse(key)
    if (id !== undefined) this.#places.delete(id)
    else {
      this.#held = undefined
      this.#freeSince = this.#clock.now()
    }
  }

  #tell(): void {
    clearTimeout(this.#turn)
    if (this.#held || !this.#isReady) return
    let ahead = 0
    for (const id of this.#places.keys()) {
      const wake = this.#wakes.get(id)
      if (wake) {
        const whom = `${ahead} ${id}`
        if (this.#told === whom) return
        const delay = this.#freeSince + ahead * TURN - this.#clock.now()
        if (ahead > 0 && delay > 0) {
          this.#turn = setTimeout(() => this.#tell(), delay).unref()
        } else {
          this.#told = whom
          wake()
        }
        return
      }
      ahead += 1
    }
  }

  #aheadOf(id: string): number {
    let ahead = 0
    for (const other of this.#places.keys()) {
      if (other === id) break
      ahead += 1
    }
    return ahead
  }

  /** What was said meanwhile is lost: all is read anew. */
  #lose(): void {
    this.#isReady = false
    this.#opening = undefined
    const end = this.#endStream
    this.#endStream = undefined
    end?.()
    this.#openAgain(SHORTEST_PAUSE)
  }

  #openAgain(pause: number): void {
    const again = (): void => {
      if (this.#isOver || this.#gateway.isClosed) return
      this.open().catch(() => this.#openAgain(Math.min(pause * 2, LONGEST_PAUSE)))
    }
    clearTimeout(this.#again)
    this.#again = setTimeout(again, pause * (0.5 + Math.random() / 2)).unref()
  }

  /** Ends some time after nobody here needs it. Claims that ask no more have lapsed. */
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
    this.#lingering = setTimeout(look, LINGER).unref()
  }
}
