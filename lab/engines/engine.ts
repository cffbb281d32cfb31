import type { Fault } from '../faults/fault.ts'
import type { Endpoint } from '../servers/port.ts'
import type { Opening } from './opening.ts'

/** Real servers of one kind, for one run. */
export interface Engine extends AsyncDisposable {
  readonly name: string
  /** The versions of the servers, by program. */
  readonly versions: Readonly<Record<string, string>>
  /**
   * After the ttl of a dead holder, a waiter must acquire the name within this many milliseconds: without an election of the
   * servers, and after one.
   */
  readonly bound: { readonly death: number; readonly election: number }
  /** How long an unresponsive holder keeps a name, in milliseconds. @default the ttl */
  readonly lasts?: number
  /** How long it may grant nothing after its start, in milliseconds. @default 0 */
  readonly warmUp?: number
  /** The addresses of the servers. Each client reaches them through proxies. Empty for a file. */
  readonly endpoints: readonly Endpoint[]
  /** Environment variables for client processes. */
  readonly env?: Readonly<Record<string, string>>
  /** How a client opens its store, with these proxies in front of the endpoints. */
  open(proxies: readonly Endpoint[]): Opening
  /** The faults of the servers, by name. */
  readonly faults: Readonly<Record<string, Fault>>
  /** Does a lease end with the connection of its holder, before the holder is notified? @default false */
  readonly endsWithConnection?: boolean | undefined
  /** Does the process of a holder end a lease at the store that is over by its own clock? @default false */
  readonly endsByHolder?: boolean
  /** Has it no readers and writers? @default false */
  readonly lacksReaders?: boolean
  /** May a paused client block the store for all others? @default false */
  readonly clientsBlockOthers?: boolean
}

export interface EngineOptions {
  /** The ttl of leases, in milliseconds. */
  readonly ttl: number
  /** Can clocks be changed? If so, a library is compiled for it. */
  readonly clocks: boolean
}
