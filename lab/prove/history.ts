import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { LeaseError } from '../../src/contract/errors.ts'

/** What is told of each kind of event, beside when it happened. */
export interface Details {
  /** The first of all. `faults` are the words that its events `fault` use for `what`: each must happen. */
  run: {
    readonly engine: string
    readonly seed: number
    readonly ttl: number
    readonly clients: number
    readonly names: readonly string[]
    /** Does the resource refuse tokens below the highest that it has seen? */
    readonly fence: boolean
    readonly faults: readonly string[]
    readonly versions: Readonly<Record<string, string>>
    /** Milliseconds after a ttl within which a name that is asked for is had again, without and after an election. */
    readonly bound: { readonly death: number; readonly election: number }
  }
  /** A process of the client runs. */
  started: { readonly client: number; readonly pid: number }
  /** Its end was seen. */
  died: { readonly client: number; readonly pid: number }
  /** An acquisition begins; `op` is its number, unique in the run. Written before the call. */
  asked: Of
  /** It was handed out. `asked` is when the request that won left, `waited` the milliseconds since it was asked for. */
  granted: Of & { readonly token: string; readonly asked: number; readonly waited: number }
  failed: Of & { readonly code: string }
  /**
   * It looked, and was told that it holds: right after the grant, before each write and at each renewal. `at` is read
   * before the look and `until` counts from a moment before `remaining` was read, so that no pause makes them later
   * than they are.
   */
  believed: Of & { readonly until: number }
  /** The signal aborted, or a look said so. */
  lost: Of & { readonly reason: string }
  /** Written before the call. */
  releasing: Of
  released: Of & { readonly outcome?: string }
  /** A write leaves; `write` is its number, unique in the run. Written before it is sent. */
  writing: Of & { readonly token: string; readonly write: number }
  /** What the writer was told of it. */
  wrote: Of & { readonly write: number }
  refused: Of & { readonly write: number }
  unsure: Of & { readonly write: number }
  /** By the resource itself, in its own order and before it answers: the truth. */
  accepted: Decision
  rejected: Decision
  /** Something goes wrong, until `until` or the event `healed` of the same words; with neither it is over at once. */
  fault: {
    readonly what: string
    readonly target: string
    readonly until?: number
    /** The client that it strikes; without one, it strikes servers or all. */
    readonly client?: number
    /** The client that stands still meanwhile. */
    readonly pausesClient?: number
    /** It moves a clock by more than the engine promises to bear. */
    readonly changesClock?: boolean
    /** What was acknowledged is forgotten by more servers than the engine promises to bear. */
    readonly forgets?: boolean
    /** Too few servers are left to serve anybody. */
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
  /** The highest token that the resource had seen before. */
  readonly mark: string
}

export type Kind = keyof Details

/** Something that happened, `at` milliseconds after the start of the run. Tokens are decimal strings. */
export type Event<K extends Kind = Kind> = K extends Kind
  ? { readonly kind: K; readonly at: number } & Details[K]
  : never

/** What happened in a run, in order. */
export type History = readonly Event[]

/**
 * Writes what happens in a process. Each event is one write to the end of the file: those of several processes stand
 * whole in it, and what a process wrote stays when it is killed.
 */
export class Recorder {
  readonly #file: number
  readonly #origin: bigint

  /** `origin`: the start of the run by `process.hrtime.bigint()`, which all processes of a host have in common. */
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
 * The events of all these files, in the order in which they happened. A last line without an end, which a crash of the
 * machine may leave, is passed over. Throws `INVALID_ARGUMENT` for any other line that is no event.
 */
export function readHistory(...paths: readonly string[]): Event[] {
  return paths.flatMap(path => parse(path, readFileSync(path, 'utf8'))).sort((one, other) => one.at - other.at)
}

function parse(path: string, text: string): Event[] {
  const lines = text.split('\n').slice(0, -1)
  return lines.map((line, index) => {
    try {
      const event: unknown = JSON.parse(line)
      if (isEvent(event)) return event
    } catch {
      // Said below, with the place.
    }
    const shown = JSON.stringify(line.slice(0, 80))
    throw new LeaseError('INVALID_ARGUMENT', `line ${index + 1} of ${path} is no event of a history: ${shown}`)
  })
}

function isEvent(value: unknown): value is Event {
  return typeof value === 'object' && value !== null && 'kind' in value && 'at' in value && Number.isFinite(value.at)
}
