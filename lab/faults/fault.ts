import type { Details } from '../judge/history.ts'
import type { Random } from './random.ts'

/** What a fault affects and excuses. */
export type Effects = Omit<Details['fault'], 'what' | 'target' | 'until'>

/** One injection of a fault. */
export interface Turn {
  readonly random: Random
  /** How long a lasting fault lasts, in milliseconds. */
  readonly length: number
  /** Records the fault. Called once, before it begins. It ends when the fault's promise settles. */
  report(target: string, effects?: Effects): void
  /** Resolves after this many milliseconds, or at the end of the run. */
  wait(ms: number): Promise<void>
}

/** Injects a fault and resolves when it is repaired. If it has not called `report`, it was not possible now. */
export type Fault = (turn: Turn) => Promise<void>

/** Chooses one of several clients, of which there is at least one. */
export type Choose = <Item extends { readonly number: number }>(random: Random, clients: readonly Item[]) => Item

/** Those of addresses last long, and no other fault begins meanwhile: clients must be served although one address is dead. */
export type FaultGroup = 'client' | 'network' | 'server' | 'address' | 'clock'

/** All faults by name. */
export const FAULTS: Readonly<Record<string, { readonly group: FaultGroup; readonly what: string }>> = {
  'client-pause': { group: 'client', what: 'a client is paused (SIGSTOP) and resumed' },
  'client-kill': { group: 'client', what: 'a client is killed (SIGKILL) and replaced' },
  'client-block': { group: 'client', what: 'the event loop of a client is blocked' },
  'client-late': { group: 'client', what: 'a waiter is blocked between its grant by the store and the reading of it' },
  'client-clock': { group: 'clock', what: 'the wall clock of a client jumps' },
  'client-speed': { group: 'clock', what: 'the clock of a client runs too fast' },
  cut: { group: 'network', what: 'nothing passes between a client and the servers' },
  'cut-requests': { group: 'network', what: 'the requests of a client are lost' },
  'cut-replies': { group: 'network', what: 'the replies to a client are lost' },
  delay: { group: 'network', what: 'requests and replies take longer' },
  late: { group: 'network', what: 'requests arrive after their sender gave up, behind newer ones' },
  far: { group: 'network', what: 'a client has a round trip of 240 ms for some ttls, and must be served' },
  reset: { group: 'network', what: 'a connection is reset between a request and its reply' },
  'server-pause': { group: 'server', what: 'a server is paused (SIGSTOP) and resumed' },
  'server-kill': { group: 'server', what: 'a server is killed and restarted with its data' },
  'server-forget': { group: 'server', what: 'a server is killed and restarted without its data' },
  'server-clock': { group: 'clock', what: 'the clock by which a server ends leases jumps' },
  'session-end': { group: 'server', what: 'a server ends the sessions of all clients' },
  'majority-clock': { group: 'clock', what: 'the clocks of most servers jump forward at once' },
  switchover: {
    group: 'server',
    what: 'a replica takes over behind the same address; the old server stays up, or hangs later',
  },
  failover: { group: 'server', what: 'the master is killed and its replica takes over' },
  'stale-failover': { group: 'server', what: 'a replica takes over that missed the last writes' },
  'leader-kill': { group: 'server', what: 'the leader is killed and restarted with its data' },
  'leader-pause': { group: 'server', what: 'the leader is paused (SIGSTOP) until another leads, and resumed' },
  'leader-cut': { group: 'server', what: 'the leader is cut off from the other servers' },
  'first-address': {
    group: 'address',
    what: 'the first address accepts connections and answers nothing; all reconnect',
  },
  'name-server': { group: 'address', what: 'the name of one server cannot be looked up; all reconnect' },
}
