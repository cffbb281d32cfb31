import type { Store } from '../../src/store.ts'

/** Undoes a fault. Resolves when the server serves again. */
export type Cure = () => Promise<void>

/** What a case may need beyond the contract. */
export type Need =
  /** Waiters are served in order of arrival (`guarantees.order`). */
  | 'queue'
  /** Waiters are woken at a release (`guarantees.waiting`). */
  | 'watch'
  /** A lease is independent of the client that acquired it: others can renew and release it, and it outlives that client. */
  | 'apart'
  /** Simultaneous acquires of one claim through two clients are granted one token. A majority of servers cannot. */
  | 'one token'
  /** A name has as many slots as the limits of claims allow (`guarantees.sharing`). */
  | 'slots'
  /** A lease that was seen to end has ended, although nothing was written since. */
  | 'final'
  /** A lease can be broken. */
  | 'break'
  /** Each open store has its own resources to close. */
  | 'close'
  /** One client can be cut off from the server, which continues to serve the others. */
  | 'cut'
  /** The requests of one client can be delayed. */
  | 'delay'
  /** The server can be killed and started again. */
  | 'stop'
  /** The server can be paused. Requests sent meanwhile arrive when it continues. */
  | 'pause'
  /** The clock of the server can be set forward and back. */
  | 'jump'

/** A client that can be cut off alone. Requests and replies are then lost without an error. */
export interface Severable {
  readonly store: Store
  cut(): Promise<Cure>
}

/** A client whose requests can be delayed. */
export interface Delayable {
  readonly store: Store
  /**
   * Holds back everything that the client sends from now on. The cure delivers it in order, including requests that the
   * client has given up on meanwhile. Later requests pass.
   */
  delay(): Promise<Cure>
}

/** The faults that a harness provides. All clients must reach the server again after the cure. */
export interface Faults {
  severable?(): Promise<Severable>
  delayable?(): Promise<Delayable>
  /** The server dies: requests fail or are not answered. It may lose its data. */
  stop?(): Promise<Cure>
  pause?(): Promise<Cure>
  /** Sets the server's clock forward by `ms`, or back. */
  jump?(ms: number): Promise<void>
}

/** A store under test. */
export interface Harness {
  readonly name: string
  /** Opens a new client of the same server and names, like another process. */
  open(): Promise<Store>
  readonly faults?: Faults | undefined
  /**
   * What this store or harness lacks, with the reason in a sentence. Everything else is tested. It is an error to list
   * what the store promises.
   */
  readonly lacks?: { readonly [Lacked in Need]?: string | undefined } | undefined
  /** Multiplies every ttl, for engines that count in seconds. @default 1 */
  readonly scale?: number | undefined
  /** The number of leases that the case for leaks acquires and releases. @default 1,000 */
  readonly cycles?: number | undefined
  /** The number of names that are requested at once. A server must answer the last one within a third of a ttl. @default 500 */
  readonly burst?: number | undefined
}

const fault: Partial<Record<Need, keyof Faults>> = {
  cut: 'severable',
  delay: 'delayable',
  stop: 'stop',
  pause: 'pause',
  jump: 'jump',
}

/** Throws a `TypeError` unless the harness provides each fault or says why not. */
export function checkHarness({ name, faults, lacks }: Harness): void {
  for (const [need, method] of Object.entries(fault)) {
    const has = faults?.[method] !== undefined
    const says = lacks?.[need as Need] !== undefined
    if (has === says)
      throw new TypeError(
        has
          ? `the harness ${name} has both faults.${method} and lacks.${need}: remove one`
          : `the harness ${name} has no faults.${method}: add it, or give the reason in lacks.${need}`,
      )
  }
}
