import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { LeaseError } from '../../src/index.ts'
import type { Guarantees } from '../../src/store.ts'
import type { Mark, Role, Shared } from './shared.ts'

/** The fields of each kind of event, in addition to its time. */
export interface Details {
  /** The first event. Each of `faults` must occur as `what` of an event `fault`. */
  run: {
    readonly engine: string
    readonly seed: number
    readonly ttl: number
    readonly clients: number
    readonly names: readonly string[]
    /** The names that clients share. The others are leases. */
    readonly shared?: Readonly<Record<string, Shared>>
    /** Does the resource refuse tokens below the highest one that it has seen? */
    readonly fence: boolean
    readonly faults: readonly string[]
    readonly versions: Readonly<Record<string, string>>
    /** Does a lease end with the connection of its holder? */
    readonly endsWithConnection?: boolean
    /** Does the process of a holder end a lease at the store that is over by its own clock? */
    readonly endsByHolder?: boolean
    /** How soon after a ttl a waiter acquires the name, in milliseconds: without an election and after one. */
    readonly bound: { readonly death: number; readonly election: number }
  }
  /** A process of the client started. */
  started: { readonly client: number; readonly pid: number }
  /** It ended. */
  died: { readonly client: number; readonly pid: number }
  /** It has opened its store, which promises this to waiters. */
  opened: { readonly client: number } & Pick<Guarantees, 'waiting' | 'order'>
  /** The machine kept a process of the lab from running: a client, or the one that injects faults. `at` is its end. */
  stalled: { readonly client?: number; readonly ms: number }
  /** An acquisition began. `op` is its number, unique in the run. Written before the call. */
  asked: Of
  /** It was granted. `asked` is when the granted request left. */
  granted: Of & {
    readonly token: string
    readonly asked: number
    /** Of a shared name: what was granted. `token` is that of the first slot. */
    readonly role?: Role
    readonly slots?: readonly Mark[]
  }
  failed: Of & { readonly code: string }
  /**
   * The client checked that it holds: after the grant, before each write and at each renewal. `at` is read before the
   * check, and `until` counts from then, so no pause makes them too late.
   */
  believed: Of & { readonly until: number }
  /**
   * The core asks the store for a claim, under the name that the store sees: a permit may be a lease on one of several names.
   * A request without an answer may have any outcome.
   */
  requested: {
    readonly client: number
    readonly name: string
    /** The id of the claim. */
    readonly claim: string
    readonly request: number
    readonly verb: 'acquire' | 'renew' | 'release'
    readonly ttl?: number
    readonly limit?: number
    readonly units?: number
  }
  answered: {
    readonly request: number
    readonly is: 'held' | 'busy' | 'released' | 'gone'
    readonly token?: string
    readonly ttl?: number
    readonly slots?: readonly number[]
  }
  /** The client was notified of the loss, by the signal or a check. */
  lost: Of & { readonly reason: string }
  /** Written before the call. */
  releasing: Of
  released: Of & { readonly outcome?: string }
  /** A write is about to be sent. `write` is its number, unique in the run. */
  writing: Of & { readonly token: string; readonly write: number }
  /** What the writer was answered. */
  wrote: Of & { readonly write: number }
  refused: Of & { readonly write: number }
  unsure: Of & { readonly write: number }
  /** What the resource decided, in its own order, written before it answers. */
  accepted: Decision
  rejected: Decision
  /** A fault, until `until` or the event `healed` with the same `what` and `target`. With neither it is over at once. */
  fault: {
    readonly what: string
    readonly target: string
    readonly until?: number
    /** The client that it strikes. Without one, it strikes servers or all. */
    readonly client?: number
    /** The client that is paused meanwhile. */
    readonly pausesClient?: number
    /** It moves a clock by more than the engine promises to tolerate. */
    readonly changesClock?: boolean
    /** More servers forget acknowledged writes than the engine promises to tolerate. */
    readonly forgets?: boolean
    /** Two servers may answer at once. Neither knows the leases of the other, and those of one are forgotten. */
    readonly splits?: boolean
    /** The client is slow but served: what holds in calm times holds for it. */
    readonly steady?: boolean
    /** Too few servers are left to serve. */
    readonly stopsMajority?: boolean
  }
  healed: { readonly what: string; readonly target: string }
  ended: Readonly<Record<never, never>>
}

interface Of {
  readonly client: number
  readonly name: string
  readonly op: number
}

interface Decision {
  readonly name: string
  readonly token: string
  readonly write: number
  /** The high-water mark: the highest token that the resource had seen before. */
  readonly mark: string
}

export type Kind = keyof Details

/** An event, `at` milliseconds after the start of the run. Tokens are decimal strings. */
export type Event<K extends Kind = Kind> = K extends Kind
  ? { readonly kind: K; readonly at: number } & Details[K]
  : never

/** The events of a run, in order. */
export type History = readonly Event[]

/**
 * Writes the events of a process. Each event is one append, so several processes can share a file, and a process that
 * is killed loses nothing.
 */
export class Recorder {
  readonly #file: number
  readonly #origin: bigint

  /** `origin`: the start of the run by `process.hrtime.bigint()`, which all processes of a host share. */
  constructor(path: string, origin: bigint) {
    this.#file = openSync(path, 'a')
    this.#origin = origin
  }

  /** Milliseconds since the start of the run. */
  now(): number {
    return Number((process.hrtime.bigint() - this.#origin) / 1_000n) / 1_000
  }

  write<K extends Kind>(kind: K, details: Details[K], at: number = this.now()): void {
    writeSync(this.#file, `${JSON.stringify({ kind, at, ...details })}\n`)
  }

  close(): void {
    closeSync(this.#file)
  }
}

/**
 * The events of all these files, in order of time. Files named `.gz` are compressed. Skips an incomplete last line, which a
 * crash of the machine may leave. Throws `INVALID_ARGUMENT` for any other line that is not an event.
 */
export function readHistory(...paths: readonly string[]): Event[] {
  return paths.flatMap(path => parse(path, textOf(path))).sort((one, other) => one.at - other.at)
}

function textOf(path: string): string {
  const bytes = readFileSync(path)
  return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString()
}

function parse(path: string, text: string): Event[] {
  const lines = text.split('\n').slice(0, -1)
  return lines.map((line, index) => {
    try {
      const event: unknown = JSON.parse(line)
      if (isEvent(event)) return event
    } catch {
      // Reported below, with the line number.
    }
    const shown = JSON.stringify(line.slice(0, 80))
    throw new LeaseError('INVALID_ARGUMENT', `line ${index + 1} of ${path} is not an event of a history: ${shown}`)
  })
}

function isEvent(value: unknown): value is Event {
  return typeof value === 'object' && value !== null && 'kind' in value && 'at' in value && Number.isFinite(value.at)
}
