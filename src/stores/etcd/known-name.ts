import type { Clock } from '../../contract/time.ts'
import type { Keys } from './keys.ts'
import type { KeyValue, WatchAnswer } from './messages.ts'
import { isPassed } from './record.ts'
import type { View } from './view.ts'

interface Position {
  readonly found: KeyValue
  /** The time when this process first saw the position. */
  readonly seenAt: number
}

/** A position that is gone although its waiter does not hold: the id of the claim, and the create revision of its key. */
export interface Lost {
  readonly id: string
  readonly revision: string
}

/** The holders and the queue of a name, as far as its watch has reported. */
export class KnownName {
  readonly #keys: Keys
  readonly #clock: Clock
  readonly #holders = new Map<string, KeyValue>()
  /** The positions in the order of the queue. */
  readonly #positions = new Map<string, Position>()
  #revision = 0n
  /** The time when capacity was last freed, as far as it was seen here. */
  #changed: number

  constructor(keys: Keys, clock: Clock) {
    this.#keys = keys
    this.#clock = clock
    this.#changed = clock.now()
  }

  get revision(): bigint {
    return this.#revision
  }

  get changed(): number {
    return this.#changed
  }

  /** The number of keys. */
  get size(): number {
    return this.#holders.size + this.#positions.size
  }

  /** The positions by the ids of their claims, in order. */
  get positions(): ReadonlyMap<string, Position> {
    return this.#positions
  }

  /** The number of waiters that were passed and have not asked since. */
  get passed(): number {
    let count = 0
    for (const { found } of this.#positions.values()) if (isPassed(found)) count += 1
    return count
  }

  /** Is it likely that a new claim of this limit must wait? */
  isBusy(limit: number): boolean {
    return this.#positions.size + (limit === 1 ? this.#holders.size : 0) > 0
  }

  /** The state of the name up to the last waiter that matters. `isLast` finds that waiter. @default all waiters */
  view(isLast: (id: string, found: KeyValue) => boolean = () => false): View {
    const waiters: KeyValue[] = []
    for (const [id, { found }] of this.#positions) {
      waiters.push(found)
      if (isLast(id, found)) break
    }
    return {
      holders: [...this.#holders.values()],
      waiters,
      others: 0,
      revision: this.#revision,
      changed: this.#changed,
    }
  }

  /** The waiters before this one, or all if it has no position. */
  before(id: string): readonly KeyValue[] {
    const { waiters } = this.view(each => each === id)
    return this.#positions.has(id) ? waiters.slice(0, -1) : waiters
  }

  /**
   * The time when capacity was last freed, if everything that was read is known here. Otherwise it may have been freed just
   * now. `joined`: a new waiter.
   */
  changedIn({ holders, waiters }: View, joined?: string): number {
    return this.#isAll([...holders, ...waiters], joined) ? this.#changed : Number.POSITIVE_INFINITY
  }

  /** Replaces the state by all keys of the name. `kvs` are in the order of their create revisions. */
  load(kvs: readonly KeyValue[], revision: bigint): Lost[] {
    const there = new Set(kvs.map(({ key }) => key))
    const known = [...this.#holders.values(), ...[...this.#positions.values()].map(({ found }) => found)]
    const isNews = !this.#isAll(kvs)
    const lost = this.#change(revision, () => {
      for (const found of kvs) this.#put(found)
      return known.flatMap(({ key }) => (there.has(key) ? [] : (this.#remove(key) ?? [])))
    })
    if (isNews) this.#changed = this.#clock.now() // what happened before was not seen
    return lost
  }

  apply(events: NonNullable<WatchAnswer['events']>, revision: bigint): Lost[] {
    return this.#change(revision, () =>
      events.flatMap(({ type, kv }) => (type === 'DELETE' ? this.#remove(kv.key) : this.#put(kv)) ?? []),
    )
  }

  /** Are these all the keys that are known here, unchanged? `joined`: a new waiter. */
  #isAll(kvs: readonly KeyValue[], joined?: string): boolean {
    const isSame = (found: KeyValue): boolean => {
      const { isHeld, id } = this.#keys.parse(found.key)
      const known = isHeld ? this.#holders.get(id) : this.#positions.get(id)?.found
      return id === joined || known?.mod_revision === found.mod_revision
    }
    const isNew = joined !== undefined && !this.#positions.has(joined)
    return this.size + (isNew ? 1 : 0) === kvs.length && kvs.every(isSame)
  }

  #change(revision: bigint, make: () => Lost[]): Lost[] {
    const first = this.#first
    const lost = make()
    this.#revision = revision
    if (first !== undefined && !this.#positions.has(first)) this.#changed = this.#clock.now()
    return lost
  }

  /** The id of the first waiter that was not passed. */
  get #first(): string | undefined {
    for (const [id, { found }] of this.#positions) if (!isPassed(found)) return id
    return undefined
  }

  #put(found: KeyValue): undefined {
    const { isHeld, id } = this.#keys.parse(found.key)
    if (isHeld) return void this.#holders.set(id, found)
    const known = this.#positions.get(id)
    if (known && known.found.create_revision !== found.create_revision) this.#positions.delete(id) // it now is the last one
    this.#positions.set(id, { found, seenAt: known?.seenAt ?? this.#clock.now() })
  }

  #remove(key: string): Lost | undefined {
    const { isHeld, id } = this.#keys.parse(key)
    const known = this.#positions.get(id)
    if (isHeld) this.#holders.delete(id)
    else this.#positions.delete(id)
    if (!isHeld && !known) return undefined
    if (!isHeld && known && !this.#holders.has(id)) return { id, revision: known.found.create_revision }
    this.#changed = this.#clock.now() // a holder ended, or a waiter was granted
    return undefined
  }
}
