/**
 * The contract between the core and an engine. A store answers one question at a time and never waits, retries
 * or keeps a timer: everything that takes time happens once, in the core. Rules 1-8 are in ARCHITECTURE.md.
 */

/** One wish to hold one name. Its id is never reused, so that asking again can only ever mean the same wish. */
export interface Claim {
  readonly name: string
  /** 128 random bits, in hexadecimal. */
  readonly id: string
  /** Who asks, for people to read; it decides nothing. */
  readonly owner: string
  /** Milliseconds that a grant lasts unless it is renewed. */
  readonly ttl: number
  /** Free text of the holder, visible to all. */
  readonly note: string
  /** May the claim join the line of waiters? Without it a busy answer leaves nothing behind. */
  readonly queue: boolean
  /** What it was granted, once it holds: a store of several servers mends by it what one of them has lost. */
  readonly token?: bigint | undefined
}

/** The claim holds the name for `ttl` ms, counted by the server, and `token` outranks every earlier holder's. */
export interface Grant {
  readonly held: true
  readonly token: bigint
  /** Milliseconds as the server granted them; it may be more than was asked for. */
  readonly ttl: number
}

/** Another claim holds the name, or stands before this one in line. */
export interface Busy {
  readonly held: false
  /** Ask again after this many milliseconds if nothing woke the claim before. */
  readonly retryAfter: number
  /** How many waiters stand before this claim, where the store keeps a line. */
  readonly ahead?: number | undefined
  readonly holder?: LeaseRecord | undefined
  /**
   * Since before this request the store hears who wakes the claim, and keeps what it hears until `watch`: then the claim
   * need not be asked again after that. @default false
   */
  readonly listens?: boolean | undefined
}

/** A hint to a waiter: ask again after `delay` ms. @default at once */
export type Wake = (delay?: number) => void

/** What anybody may see of a lease or of a waiter. */
export interface LeaseRecord {
  readonly name: string
  readonly state: 'held' | 'waiting'
  readonly owner: string
  /** Of a holder only. */
  readonly token?: bigint | undefined
  readonly note: string
  /** Milliseconds until the lease, or the place in line, lapses unless it is renewed. */
  readonly remaining: number
  /** Of a waiter only: 0 is the next to hold. */
  readonly position?: number | undefined
}

/** What anybody may see of one of the servers that a store is made of. */
export interface NodeRecord {
  /** Its address. */
  readonly name: string
  /** `quarantined`: it may have forgotten leases, and votes in `remaining` ms. `unavailable`: it does not answer. */
  readonly state: 'serving' | 'quarantined' | 'unavailable'
  /** Milliseconds; of a quarantined one. */
  readonly remaining?: number | undefined
  /** Why it does not serve. */
  readonly reason?: string | undefined
}

/** What an engine promises, as data: printed by the docs and the command line, checked by the fault lab. */
export interface Guarantees {
  /** Who shares the names: one process, one machine, or all that reach the server. */
  readonly scope: 'process' | 'machine' | 'network'
  /** When two holders can believe in the same lease at once, in a sentence; fencing then decides. */
  readonly exclusion: string
  /** What keeps tokens rising, in a sentence. */
  readonly token: string
  /** Are waiters served in the order in which they came? */
  readonly order: 'first come, first served' | 'not promised'
  /** Does a waiter hear of a release, or does it ask again and again? */
  readonly waiting: 'pushed' | 'polled'
  /** The shortest ttl in milliseconds that is sensible here. */
  readonly shortestTtl: number
  /**
   * The longest ttl in milliseconds for which a lease lasts although its process is gone; 0 where all leases end with
   * its connection. @default any ttl
   */
  readonly longestUnattended?: number | undefined
  /** The clock that decides when a lease has ended. */
  readonly clock: string
  /** What survives a restart or a failover of the server, in a sentence. */
  readonly durability: string
  /** Everything it does not promise, a sentence each. */
  readonly limits: readonly string[]
}

/** The names to look at: exactly one, or all that begin alike. */
export type Query = { readonly name: string } | { readonly prefix: string }

/** Names a claim without its wishes. */
export type ClaimKey = Pick<Claim, 'name' | 'id' | 'token'>

/**
 * An engine. Every call may reject, which means that its outcome is unknown (or, with a `LeaseError` that is not
 * `retryable`, that asking again is useless). `signal` ends the caller's interest, never what the server does.
 */
export interface Store extends AsyncDisposable {
  /** For people, such as `sqlite` or `redis cluster`. */
  readonly kind: string
  readonly guarantees: Guarantees
  /** Milliseconds that a request to acquire for this ttl may take. @default min(5,000, ttl / 3) */
  acquireLimit?(ttl: number): number
  /**
   * Milliseconds after its last renewal within which a holder of this ttl that died is followed, in a cluster whose
   * leader stays and with the usual settings of its servers. @default the ttl
   */
  takeover?(ttl: number): number
  /** Puts the claim; does it hold now? Idempotent on the id: asking again refreshes a holder and keeps a place. */
  acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy>
  /** `undefined`: the lease is certainly gone. A rejection: nobody knows. */
  renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined>
  /**
   * Writes the note of the claim that holds, for all to see, and nothing else: its token and its end stay as they are.
   * False: the lease is certainly gone. Neither a renewal nor a late copy of `acquire` takes the note back.
   */
  annotate(claim: Claim, signal: AbortSignal): Promise<boolean>
  /** Withdraws a claim that holds, waits, or has not arrived yet (then it is refused when it does). Idempotent. */
  release(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'>
  /**
   * Calls `lost` as soon as the store knows by itself that a lease which it granted is gone, such as with its session,
   * and answers how to call that off. @default losses are told by renewals
   */
  onLoss?(key: ClaimKey, lost: () => void): () => void
  /** Resolves once armed; from then until `signal` aborts, `wake` may be called. */
  watch?(key: ClaimKey, wake: Wake, signal: AbortSignal): Promise<void>
  /** Holders, each followed by its waiters in order where the store keeps a line. */
  inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord>
  /** Frees the name and answers the token that now outranks the old holder, or `undefined` if nobody held it. */
  break(name: string, by: string, signal: AbortSignal): Promise<bigint | undefined>
  /** How its servers are, if it is made of several. */
  nodes?(signal: AbortSignal): Promise<readonly NodeRecord[]>
}
