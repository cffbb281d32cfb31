import type { Details } from './history.ts'
import type { Random } from './random.ts'

/** What a fault excuses, and whom it strikes. */
type Marks = Omit<Details['fault'], 'what' | 'target' | 'until'>

/** One turn of a fault. */
export interface Turn {
  readonly random: Random
  /** Milliseconds that it lasts, where it lasts. */
  readonly length: number
  /** What is about to go wrong, told before it does; once. It is over when the fault's promise settles. */
  tell(target: string, marks?: Marks): void
  /** For so many milliseconds, or until the run ends. */
  wait(ms: number): Promise<void>
}

/** Something that goes wrong, and is mended when its promise resolves. `false`: it could not be done now. */
export type Fault = (turn: Turn) => Promise<undefined | false>

/** Whom of several clients a fault strikes. There is one at least. */
export type Choose = <Item extends { readonly number: number }>(random: Random, clients: readonly Item[]) => Item

export type FaultGroup = 'client' | 'network' | 'server' | 'clock'

/** All that can go wrong, by the words that people use for it. */
export const FAULTS: Readonly<Record<string, { readonly group: FaultGroup; readonly what: string }>> = {
  'client-pause': { group: 'client', what: 'a client is stopped (SIGSTOP) and goes on' },
  'client-kill': { group: 'client', what: 'a client is killed (SIGKILL), and a new one comes' },
  'client-block': { group: 'client', what: 'the event loop of a client is blocked' },
  'client-clock': { group: 'clock', what: 'the wall clock of a client jumps' },
  cut: { group: 'network', what: 'nothing passes between a client and the servers' },
  'cut-requests': { group: 'network', what: 'requests of a client are lost, replies would pass' },
  'cut-replies': { group: 'network', what: 'requests of a client arrive, replies are lost' },
  delay: { group: 'network', what: 'requests and replies take longer' },
  late: { group: 'network', what: 'requests are held up and arrive after their sender gave up, behind newer ones' },
  reset: { group: 'network', what: 'a connection is reset between a request and its reply' },
  'server-pause': { group: 'server', what: 'a server is stopped (SIGSTOP) and goes on' },
  'server-kill': { group: 'server', what: 'a server is killed and started again with its data' },
  'server-forget': { group: 'server', what: 'a server is killed and started again without its data' },
  'server-clock': { group: 'clock', what: 'the clock of a server jumps by which leases end there' },
  'session-end': { group: 'server', what: 'a server ends the sessions of all clients' },
  'majority-clock': { group: 'clock', what: 'the clocks of most servers are set forward at once' },
  failover: { group: 'server', what: 'the master is killed, and its replica takes over' },
  'stale-failover': { group: 'server', what: 'a replica takes over that missed the last writes' },
  'leader-kill': { group: 'server', what: 'the leader is killed and started again with its data' },
  'leader-pause': { group: 'server', what: 'the leader is stopped (SIGSTOP) until there is another, and goes on' },
  'leader-cut': { group: 'server', what: 'the leader is cut off from the other servers' },
}
