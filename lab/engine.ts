import type { Opening } from './opening.ts'
import type { Fault } from './prove/fault.ts'

/** A server of an engine, as clients reach it. */
export interface Endpoint {
  readonly host: string
  readonly port: number
}

/** Real servers of one kind, started for a run and gone after it. */
export interface Engine extends AsyncDisposable {
  readonly name: string
  /** Of the servers, by name. */
  readonly versions: Readonly<Record<string, string>>
  /**
   * Milliseconds after a ttl within which the name of a dead holder must be had again by somebody who asks, without and
   * after an election.
   */
  readonly bound: { readonly death: number; readonly election: number }
  /** Milliseconds for which a holder that is silent keeps a name. @default the ttl */
  readonly lasts?: number
  /** Milliseconds after its start during which it may grant nothing. @default 0 */
  readonly warmUp?: number
  /** What each client reaches through a way of its own; none for a file. */
  readonly endpoints: readonly Endpoint[]
  /** What processes of clients must have in their environment. */
  readonly env?: Readonly<Record<string, string>>
  /** How a client opens its store that reaches the endpoints by these. */
  open(ways: readonly Endpoint[]): Opening
  /** What can go wrong at the servers, by the name of the fault. */
  readonly faults: Readonly<Record<string, Fault>>
  /** Does a lease end with the connection of its holder, before that hears of it? @default false */
  readonly endsWithConnection?: boolean
  /** May a client that stands still keep all others from the store? @default false */
  readonly isHeldUpByClients?: boolean
}

/** What is to be started. */
export interface EngineOptions {
  /** Milliseconds. */
  readonly ttl: number
  /** May clocks be changed? Then what does it is built. */
  readonly clocks: boolean
}
