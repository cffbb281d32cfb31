import { setTimeout as sleep } from 'node:timers/promises'
import type { LeaseRecord, Pacing } from '../contract/store.ts'
import type { Locks } from '../create-locks.ts'

/** Records that are read in one look, and names that are known. */
const MOST_RECORDS = 5_000

/** Requests of a search that are sent at once. With more it is a long search. */
const FREE = 10

/** Milliseconds between two requests of a long search. */
const REST = 100

/** Milliseconds for which a free name is still read: names that are held again and again are often free when a search passes. */
const KEPT = 600_000

/** Names that are read at once, and the requests of that, where a request reads many names. */
const PAGE = 256
const PAGE_REQUESTS = 4

/** What the reader needs of locks. */
export interface Readable extends Pick<Locks, 'inspect'> {
  list(prefix: string, pacing?: Pacing): AsyncIterable<LeaseRecord>
}

/** A search of all keys of the store that takes long. */
export interface Search {
  /** Milliseconds since 1970. */
  readonly began: number
  /** Milliseconds that the search before it took. `undefined`: this is the first. */
  readonly usual: number | undefined
}

/** What one look showed. */
export interface Reading {
  readonly records: readonly LeaseRecord[]
  /** There are more records than were read, or names that were not found yet. */
  readonly isPartial: boolean
  /** The names that were read: whether others are held is unknown. `undefined`: all. */
  readonly names: ReadonlySet<string> | undefined
  readonly search: Search | undefined
  /** Requests that it took. `undefined`: the store does not say. */
  readonly requests: number | undefined
}

type Listed = Omit<Reading, 'requests'>

/**
 * Reads all leases of a store. Where that needs many requests because the store also has keys of others, it goes on slowly
 * in the background, and each look reads the names that are known.
 */
export class Reader {
  readonly #locks: Readable
  /** When each was last found or held, by `performance.now()`. The earliest is the first. */
  readonly #names = new Map<string, number>()
  #search: Search | undefined
  #usual: number | undefined
  /** Of the present reading. `undefined`: the store has never said. */
  #requests: number | undefined
  #stop = new AbortController()

  constructor(locks: Readable) {
    this.#locks = locks
  }

  /** Rejects if the store cannot be read. */
  async read(): Promise<Reading> {
    if (this.#requests !== undefined) this.#requests = 0
    const listed = (this.#search ? undefined : await this.#list()) ?? (await this.#known())
    return { ...listed, requests: this.#requests }
  }

  /** A name that somebody holds or wants to see: a long search may find it late. */
  learn(name: string): void {
    if (this.#search) this.#keep(name)
  }

  /** Ends a search, and forgets all names. */
  reset(): void {
    this.#stop.abort()
    this.#stop = new AbortController()
    this.#search = undefined
    this.#usual = undefined
    this.#names.clear()
  }

  /** Resolves to `undefined` once the search turns out to be long. */
  #list(): Promise<Listed | undefined> {
    return new Promise((resolve, reject) => {
      const { signal } = this.#stop
      const began = Date.now()
      let steps = 0
      const between = async (): Promise<void> => {
        steps += 1
        if (steps === FREE) {
          this.#search = { began, usual: this.#usual }
          resolve(undefined)
        }
        if (steps >= FREE) await sleep(REST, undefined, { signal, ref: false })
      }
      this.#collect(between, signal).then(
        reading => {
          if (!signal.aborted) this.#end()
          resolve(reading)
        },
        error => {
          if (!signal.aborted) this.#search = undefined
          reject(error)
        },
      )
    })
  }

  async #collect(between: () => Promise<void>, signal: AbortSignal): Promise<Listed> {
    const records: LeaseRecord[] = []
    const sent = (requests: number): void => {
      this.#requests = (this.#requests ?? 0) + requests
    }
    for await (const record of this.#locks.list('', { between, sent })) {
      signal.throwIfAborted()
      if (records.length === MOST_RECORDS)
        return { records, isPartial: true, names: new Set(records.map(({ name }) => name)), search: undefined }
      records.push(record)
      this.#keep(record.name)
    }
    return { records, isPartial: false, names: undefined, search: undefined }
  }

  #end(): void {
    if (this.#search) this.#usual = Date.now() - this.#search.began
    else this.#names.clear() // a listing shows all
    this.#search = undefined
  }

  #keep(name: string): void {
    this.#names.delete(name)
    this.#names.set(name, performance.now())
    const [earliest] = this.#names.keys()
    if (this.#names.size > MOST_RECORDS && earliest !== undefined) this.#names.delete(earliest)
  }

  async #known(): Promise<Listed> {
    for (const [name, at] of this.#names) if (performance.now() - at > KEPT) this.#names.delete(name)
    const names = [...this.#names.keys()]
    const records: LeaseRecord[] = []
    for (let start = 0; start < names.length; start += PAGE) {
      if (this.#requests !== undefined) this.#requests += PAGE_REQUESTS
      const states = names.slice(start, start + PAGE).map(name => this.#locks.inspect(name))
      for (const { holders, waiters } of await Promise.all(states)) records.push(...holders, ...waiters)
    }
    for (const { name } of records) this.#keep(name)
    return { records, isPartial: true, names: new Set(names), search: this.#search }
  }
}
