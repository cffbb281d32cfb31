import { isMarker } from '../contract/reserved.ts'
import { type Change, Changes } from './changes.ts'
import { Cost } from './cost.ts'
import type { Hold } from './hold.ts'
import { type Readable, Reader, type Reading, type Search } from './reader.ts'
import { Sight } from './sight.ts'
import { Kinds, type Sign } from './signs.ts'

/** The least time between the starts of two looks, in milliseconds. */
const SHORTEST_PAUSE = 500

/** Milliseconds until the look after a failure. The pause doubles with each further failure, up to the longest. */
const FAILED_PAUSE = 1_000
const LONGEST_FAILED_PAUSE = 10_000

/** Milliseconds for which looks continue after the last viewer left. Then everything that was seen is forgotten. */
const LINGER = 60_000

/** What all viewers see. */
export interface Look {
  /** The time of this look, and the time of the first one, in milliseconds since 1970. */
  readonly at: number
  readonly since: number
  /** Milliseconds until the next look. */
  readonly pause: number
  readonly sights: ReadonlyMap<string, Sight>
  /** The latest changes of each kind, the newest first, and the number of changes since `since`. */
  readonly changes: readonly Change[]
  readonly changed: number
  readonly takeovers: number
  /** The signs that holders may be stuck, by name. */
  readonly signs: ReadonlyMap<string, readonly Sign[]>
  /** Are there more names than are shown? */
  readonly isPartial: boolean
  /** The search for names, if it takes long. */
  readonly search: Search | undefined
  /** The error if the store could not be read. Then `sights` are those of the last look that succeeded. */
  readonly failure: Error | undefined
}

/**
 * Looks at all names for all viewers together, so more viewers do not mean more load on the store. The more a look costs,
 * the longer the pause after it.
 */
export class Survey {
  readonly #reader: Reader
  readonly #viewers = new Set<(look: Look) => void>()
  #sights = new Map<string, Sight>()
  #changes = new Changes()
  #kinds = new Kinds()
  #since = 0
  #isPartial = false
  #search: Search | undefined
  readonly #cost = new Cost()
  /** The time at which the last successful look ended, by `performance.now()`. */
  #seen = 0
  /** The number of failed looks since the last successful one. */
  #failures = 0
  #latest: Look | undefined
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> | undefined
  #leftAt = 0
  #closed = false

  constructor(locks: Readable) {
    this.#reader = new Reader(locks)
  }

  /** Adds a name that the process of the page holds, or that a viewer wants to see. */
  learn(name: string): void {
    this.#reader.learn(name)
  }

  get latest(): Look | undefined {
    return this.#latest
  }

  /** Calls `viewer` after each look, and now if there was one. Returns a function that ends it. */
  watch(viewer: (look: Look) => void): () => void {
    this.#viewers.add(viewer)
    if (this.#latest) viewer(this.#latest)
    if (!this.#timer && !this.#looking) this.#begin()
    return () => {
      this.#viewers.delete(viewer)
      this.#leftAt = performance.now()
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#viewers.clear()
    this.#reader.reset()
    await this.#looking
  }

  #begin(): void {
    if (this.#closed) return
    this.#timer = undefined
    this.#looking = this.#look().finally(() => {
      this.#looking = undefined
      if (this.#closed) return
      if (this.#viewers.size === 0 && performance.now() - this.#leftAt > LINGER) this.#forget()
      else this.#timer = setTimeout(() => this.#begin(), this.#latest?.pause ?? SHORTEST_PAUSE).unref()
    })
  }

  async #look(): Promise<void> {
    const began = performance.now()
    let failure: Error | undefined
    try {
      const reading = await this.#reader.read()
      const { records, isPartial, search, requests } = reading
      this.#isPartial = isPartial
      this.#search = search
      this.#see(reading, Date.now(), began - this.#seen)
      this.#seen = performance.now()
      this.#cost.add({ duration: this.#seen - began, requests, records: records.length })
      this.#failures = 0
    } catch (error) {
      failure = error instanceof Error ? error : new Error(String(error))
      this.#failures += 1
    }
    const pause = this.#pause()
    const at = failure === undefined ? Date.now() : (this.#latest?.at ?? Date.now())
    this.#latest = {
      at,
      since: this.#since || at,
      pause,
      sights: this.#sights,
      changes: this.#changes.latest,
      changed: this.#changes.total,
      takeovers: this.#changes.takeovers,
      signs: this.#kinds.signs(this.#sights.values()),
      isPartial: this.#isPartial,
      search: this.#search,
      failure,
    }
    for (const viewer of this.#viewers) viewer(this.#latest)
  }

  /** Milliseconds until the next look. A failed look does not count as a cost: it may have waited for a dead server. */
  #pause(): number {
    const pause = Math.max(SHORTEST_PAUSE, this.#cost.pause)
    if (this.#failures === 0) return pause
    return Math.max(pause, Math.min(FAILED_PAUSE * 2 ** (this.#failures - 1), LONGEST_FAILED_PAUSE))
  }

  #see({ records, names }: Reading, at: number, passed: number): void {
    this.#since ||= at
    const byName = Map.groupBy(records, ({ name }) => name)
    for (const name of byName.keys()) if (!this.#sights.has(name)) this.#sights.set(name, new Sight(name))
    for (const [name, sight] of this.#sights) {
      // The name is no longer read, but may still be held.
      if (names && !names.has(name)) {
        this.#sights.delete(name)
        continue
      }
      const last = sight.holds[0] ?? sight.past[0]
      const wasShared = sight.isShared
      const { ended, begun } = sight.see(byName.get(name) ?? [], at, passed)
      for (const hold of ended) {
        this.#kinds.ended(name, hold.age)
        if (hold.isOverdue) this.#change(name, hold, next(hold, begun), at)
      }
      // Changes of permits and of markers are not of interest.
      const [to] = begun
      const isSame = wasShared || sight.isShared || isMarker(name) || last?.owner === to?.owner
      if (last && to && !isSame && !(ended.includes(last) && last.isOverdue)) this.#change(name, last, to, at)
      // A name that has been free for long is dropped, so that one name per job does not fill the memory.
      if (sight.holders.length === 0 && sight.waiters.length === 0 && at - sight.seen > LINGER)
        this.#sights.delete(name)
    }
  }

  #change(name: string, from: Hold, to: Hold | undefined, at: number): void {
    this.#changes.add({ name, from: from.owner, to: to?.owner ?? '', isTakeover: from.isOverdue, at })
  }

  #forget(): void {
    this.#reader.reset()
    this.#latest = undefined
    this.#sights = new Map()
    this.#changes = new Changes()
    this.#kinds = new Kinds()
    this.#since = 0
  }
}

/** The lease that now has a slot of this one. */
function next({ slots }: Hold, begun: readonly Hold[]): Hold | undefined {
  return begun.find(hold => hold.slots.some(slot => slots.includes(slot)))
}
