import { randomBytes } from 'node:crypto'
import type { Clock } from '../../contract/time.ts'
import type { Beat } from './shared.ts'

/**
 * An etcd lease that one claim after another is on: to make one and to end it are a write each, which a claim that finds
 * its name free is spared. Whoever leaves it writes so at the key `left`, and whoever is put on it compares that, so that
 * a late request of a claim that has left does nothing.
 */
export interface Spare {
  readonly lease: string
  /** The mod revision of its key `left`. */
  readonly mark: string
  /** What it was last granted, and when that was asked for. */
  readonly beat: Beat
  readonly beatAt: number
}

/** The time of one claim on a spare lease of this store. Whoever ends it gives the lease back or revokes it, once. */
export interface Tenancy {
  spare: Spare
  /** Of what the claim holds by it. */
  revision: string | undefined
  isOver: boolean
}

/** Of each ttl; what is above that is revoked. */
const MOST = 1_000

/** Those that no claim of this store is on, by their ttl in seconds. */
export class Spares {
  readonly #clock: Clock
  readonly #bySeconds = new Map<number, Spare[]>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The one that was kept alive last, if it has enough time left to be kept alive again. */
  take(seconds: number): Spare | undefined {
    const spares = this.#bySeconds.get(seconds)
    const spare = spares?.pop()
    if (!spare || this.#isFresh(spare)) return spare
    this.#bySeconds.delete(seconds) // those below are older, and end by themselves
    return undefined
  }

  /** False if it is not worth keeping. */
  give(seconds: number, spare: Spare): boolean {
    const spares = this.#bySeconds.get(seconds) ?? []
    if (spares.length >= MOST || !this.#isFresh(spare)) return false
    this.#bySeconds.set(seconds, spares)
    spares.push(spare)
    return true
  }

  /** All, which are given up. */
  clear(): Spare[] {
    const all = [...this.#bySeconds.values()].flat()
    this.#bySeconds.clear()
    return all
  }

  #isFresh({ beat, beatAt }: Spare): boolean {
    return this.#clock.now() < beatAt + beat.ttl / 2
  }
}

/** The id of one: an even number, as those that are made of a claim's are odd. */
export function newSpare(): string {
  return (((randomBytes(8).readBigUInt64BE() >> 2n) + 1n) << 1n).toString()
}

/** Might other claims be on it later? Then it is for its store alone to revoke it. */
export function isSpare(lease: string | undefined): lease is string {
  return lease !== undefined && BigInt(lease) % 2n === 0n
}
