import { setTimeout as sleep } from 'node:timers/promises'
import type { LeaseRecord, Pacing } from '../contract/store.ts'
import type { Locks } from '../create-locks.ts'

/** The most records that one look reads, and the most names that are known. */
const MOST_RECORDS = 5_000

/** The most names that are read because somebody wants to see them. A reader of the page may ask for any name. */
const MOST_WANTED = 100

/** The requests of a search that are sent without a pause. A search that needs more is a long search. */
const FREE = 10

/** Milliseconds between two requests of a long search. */
const REST = 100

/** Milliseconds for which a free name is still read. A name that is held often may be free when a search passes. */
const KEPT = 600_000

/** The number of names that are read at once, and of their requests if a request reads many names. */
const PAGE = 256
const PAGE_REQUESTS = 4

/** What the reader needs from locks. */
export interface Readable extends Pick<Locks, 'inspect'> {
  list(prefix: string, pacing?: Pacing): AsyncIterable<LeaseRecord>
}

/** A long search through all keys of the store. */
export interface Search {
  /** The time at which it began, in milliseconds since 1970. */
  readonly began: number
  /** Milliseconds that the search before it took. `undefined`: this is the first. */
  readonly usual: number | undefined
}

/** What one look showed. */
export interface Reading {
  readonly records: readonly LeaseRecord[]
  /** Is something missing? There are more records than were read, or names that were not found yet. */
  readonly isPartial: boolean
  /** The names that were read. It is unknown whether others are held. `undefined`: all names were read. */
  readonly names: ReadonlySet<string> | undefined
  readonly search: Search | undefined
  /** The number of requests. `undefined`: the store does not say. */
  readonly requests: number | undefined
}

type Listed = Omit<Reading, 'requests'>

/**
 * Reads all leases of a store. Where that needs many requests because the store also has keys of others, it goes on slowly
 * in the background, and each look reads the names that are known.
 */
export class Reader {
  readonly #locks: Readable
  /** The time at which each name was last found or held, by `performance.now()`. The earliest comes first. */
  readonly #names = new Map<string, number>()
  /** Names that somebody holds or wants to see, and that were not found. The earliest comes first. */
  readonly #wanted = new Set<string>()
  #search: Search | undefined
  #usual: number | undefined
  /** The number of requests of the current reading. `undefined`: the store has never said. */
  #requests: number | undefined
  #stop = new AbortController()

  constructor(locks: Readable) {
    this.#locks = locks
  }

  /** Reads the leases. Rejects if the store cannot be read. */
  async read(): Promise<Reading> {
    if (this.#requests !== undefined) this.#requests = 0
    const listed = (this.#search ? undefined : await this.#list()) ?? (await this.#known())
    return { ...listed, requests: this.#requests }
  }

  /** Adds a name that somebody holds or wants to see, because a long search may find it late. */
  learn(name: string): void {
    if (!this.#search || this.#names.has(name)) return
    this.#wanted.delete(name)
    this.#wanted.add(name)
    const [earliest] = this.#wanted
    if (this.#wanted.size > MOST_WANTED && earliest !== undefined) this.#wanted.delete(earliest)
  }

  /** Ends a search, and forgets all names. */
  reset(): void {
    this.#stop.abort()
    this.#stop = new AbortController()
    this.#search = undefined
    this.#usual = undefined
    this.#names.clear()
    this.#wanted.clear()
  }

  /** Lists all leases. Resolves to `undefined` once the search turns out to be long. */
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
    this.#wanted.clear()
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
    const names = [...new Set([...this.#names.keys(), ...this.#wanted])]
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
