import type { Store } from '../contract/store.ts'

/** Undoes a fault; resolves when the server serves again. */
export type Cure = () => Promise<void>

/** What a case may need beyond the contract. */
export type Need =
  /** Waiters are served in the order in which they came (`guarantees.order`). */
  | 'line'
  /** Waiters are woken at a release (`guarantees.waiting`). */
  | 'watch'
  /** A lease is apart from the client that acquired it: others renew and release it, and it outlives that client. */
  | 'apart'
  /** A lease can be broken. */
  | 'break'
  /** Each store that is opened has something of its own to close. */
  | 'close'
  /** One client can be cut off from the server, which goes on. */
  | 'cut'
  /** The requests of one client can be held back and delivered later. */
  | 'delay'
  /** The server can be killed and started again. */
  | 'stop'
  /** The server can be made to stand still; what is sent meanwhile arrives when it goes on. */
  | 'pause'
  /** The clock of the server can be set forward and back. */
  | 'jump'

/** A client that can be cut off alone: from then on requests and replies are lost, and no error tells of it. */
export interface Severable {
  readonly store: Store
  cut(): Promise<Cure>
}

/** A client whose requests can be held back. */
export interface Delayable {
  readonly store: Store
  /**
   * Holds back everything that the client sends from now on. The cure delivers it in order, including requests that the
   * client has given up on meanwhile. Later requests pass.
   */
  delay(): Promise<Cure>
}

/** Ways to hurt the server, as far as a harness has them. All clients must find it again after the cure. */
export interface Faults {
  severable?(): Promise<Severable>
  delayable?(): Promise<Delayable>
  /** The server dies: requests fail or are not answered. It may forget everything. */
  stop?(): Promise<Cure>
  pause?(): Promise<Cure>
  /** Sets the server's clock forward by `ms`, or back. */
  jump?(ms: number): Promise<void>
}

/** A store under test. */
export interface Harness {
  readonly name: string
  /** A new client of the same server and the same names each time, as another process would have. */
  open(): Promise<Store>
  readonly faults?: Faults | undefined
  /**
   * What this store or harness has not, and why, in a sentence each. Whatever is not named here is tested; naming what
   * it promises all the same is an error.
   */
  readonly lacks?: { readonly [Lacked in Need]?: string | undefined } | undefined
  /** Multiplies every ttl, for engines that count in seconds. @default 1 */
  readonly scale?: number | undefined
  /** How often the case that looks for leaks acquires and releases. @default 1,000 */
  readonly cycles?: number | undefined
}

const fault: Partial<Record<Need, keyof Faults>> = {
  cut: 'severable',
  delay: 'delayable',
  stop: 'stop',
  pause: 'pause',
  jump: 'jump',
}

/** Throws unless the harness can do, or says why it cannot, all that cases may need. */
export function checkHarness({ name, faults, lacks }: Harness): void {
  for (const [need, method] of Object.entries(fault)) {
    const has = faults?.[method] !== undefined
    const says = lacks?.[need as Need] !== undefined
    if (has === says)
      throw new TypeError(
        has
          ? `the harness ${name} has faults.${method} and says that it lacks ${need}: remove one`
          : `the harness ${name} has no faults.${method}: add it, or say in lacks.${need} why there is none`,
      )
  }
}
