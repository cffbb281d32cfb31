/**
 * The contract between the core and an engine. A store answers requests. The core does the waiting, the retries, the
 * timers and the deadlines. It relies on rules R1 to R15 (there is no R14) and on nothing else. A case of
 * `holdfast-lab/conformance` that checks a rule begins with its number.
 *
 * R1. No slot of a name is used twice, and every slot in use is below the limit of every claim that holds
 *     (`guarantees.exclusion`). So a claim of limit 1 holds alone. A grant takes the lowest free slots, one for each unit, and
 *     keeps them. The limit and the units belong to the id of a claim: the first request that is accepted fixes them. A store
 *     whose `guarantees.sharing` is not `slots` is asked for a limit of 1 only. A claim is idempotent by its id. A holder that
 *     asks again keeps its token, and its lease lasts at least `ttl` from then on. A waiter that asks again keeps its position.
 *     Copies of a request may arrive together, and many claims may have the same owner. This holds through any client of
 *     the same server, unless `guarantees.maxUnattended` is 0. Over a quorum, simultaneous acquires of one claim
 *     through two clients may be granted different tokens. The core acquires a claim through one client only.
 *
 * R2. No request waits for a name. `acquire` answers `Busy` at once, or within 1 s if something other than a lease has
 *     locked what it would write. The answer says when to ask again, and one of the holders if the store can tell. That
 *     holder may have ended while the request was carried out. A claim that does not queue leaves nothing behind.
 *
 * R3. A stale request is harmless. Requests have a limit, counted from when they were sent: `requestLimit(ttl)` for
 *     `acquire` (by `guarantees.acquireShare`), `renew` and `annotate`, 5 s for `break`. The core waits no longer. To
 *     override a request, it sends the next one after the limit of the first. A request that reaches the server after its
 *     limit has no effect, or only effects that do no harm:
 *     - A stale `acquire` of a withdrawn claim is refused (R4). That of another claim leaves at most a lease or a waiter
 *       that ends with its ttl, as if its process had died.
 *     - A stale `renew` never shortens a lease, undoes a later renewal or revives a lease. Where the `limits` say so, it may
 *       revive a lease if nothing was written for its name since.
 *     - A stale `annotate` never replaces a later note.
 *     - A stale `break` takes the name at most from a holder that had it when the `break` was sent.
 *     - None of them touches the lease of another claim otherwise.
 *     A copy of the `acquire` that was granted never shortens the lease, however old it is.
 *
 * R4. `release` withdraws a claim by its id, never by its name, and is idempotent. `released` means that the claim held or
 *     waited and no longer does. `gone` means that nothing was found. After `gone`, an `acquire` of this claim that
 *     arrives within 5 s is refused: it is granted nothing, and what it created at the server is deleted at once.
 *     `released` does not promise that refusal. If a copy may be in flight, the core asks until the answer is `gone`.
 *
 * R5. Tokens rise per name from grant to grant: through release, expiry, `break`, a restart or loss of data, and whatever
 *     any clock does. A lease keeps its token for as long as it lives. The order may depend on a clock only if the server
 *     loses its data, or forgets a name that was unused for a day (`guarantees.token` says on which clock).
 *
 * R6. `Grant.ttl` is overstated by at most 2 ms, because servers may count whole milliseconds. `margin` covers this.
 *     After the request was sent, no other claim is granted what R1 denies it for `Grant.ttl` less 2 ms. The exceptions are a
 *     release, a `break`, and a server that loses data or whose clock steps forward. `Grant.ttl` is at least the
 *     requested ttl, unless the answer took long or the `limits` of the store say otherwise. A lease that is not renewed
 *     ends soon after its ttl, by the server's clock, and nothing revives it but what R3 allows. `undefined` from `renew`,
 *     or false from `annotate`, means that the lease is certainly gone, and not that the request conflicted with another. A
 *     rejection means that the outcome is unknown.
 *
 * R7. `annotate` changes the note of the claim that holds, and nothing else: not the token, the end of the lease or the
 *     queue. Neither a renewal nor an `acquire` that arrives later brings back the old note.
 *
 * R8. Where `guarantees.order` is `first come, first served`, waiters are served in the order in which they came. If the first
 *     waiter does not fit with the holders, nobody behind it is granted. A claim that does not queue comes after all waiters.
 *     A waiter keeps its position if it asks by its `retryAfter`, or if it is `kept`. If it stops asking, or its process stops,
 *     its position lapses within 5 s. If it is the first and fits, the second may pass it sooner: once its grace period is over,
 *     which is `TURN` (100 ms) plus the round trip of the waiter, at most 1.1 s. Without the round trip, near waiters would take
 *     the name while one that is far away is still asking. A waiter that was passed keeps its position, and counts again once
 *     it asks.
 *
 * R9. `watch` resolves once it is armed. From then on the first waiter is woken when slots are freed or another waiter
 *     becomes the first, if it fits. The second is woken early enough to follow if the first does not ask. The grant of a waiter
 *     wakes the next one in the same way. After `signal` aborts nobody is woken. A wake is a hint and grants nothing: a waiter
 *     holds only once the answer to its own `acquire` is a grant. A lost wake costs only time, and a superfluous one costs a
 *     request. A kept waiter (R15) is also woken when a lease may have ended and its grace period begins, when its position is
 *     lost, and when the store cannot be asked.
 *
 * R10. `break` ends the leases of all holders, leaves the queue as it is, and answers a token above theirs and below the next
 *      one. With `slot` it ends only the lease that has this slot, with `token` only the one that has this token. `undefined`:
 *      there was no such lease, and nothing changed. If no higher token is left, it rejects.
 *
 * R11. Names are compared byte by byte, and every string that the core accepts is a name. `inspect` shows the leases and
 *      waiters of exactly one name, or of all names that begin with the prefix. It shows each once, and none that has
 *      ended. A store made of several servers shows the state of each server first, also if too few of them answer; the
 *      iteration then rejects.
 *
 * R12. A store that has `onLoss` calls `lost` when it finds out by itself that a lease is gone before its time, such as
 *      with a session. It does so at most once, and not after it was called off. Other losses are found by renewals, and may
 *      be reported by `lost` as well.
 *
 * R13. Requests are independent. A request that was given up before it was sent is not sent, and rejects with the reason.
 *      Requests that share a round trip with it are answered. A closed store rejects with `CLOSED` and ends no lease of
 *      others.
 *
 * R15. No waiter is forgotten. A claim that queues and got a busy answer asks by itself, by its `retryAfter`, or it is
 *      `kept`: from `watch` until `signal` aborts, the store asks for it at least once in every third of the time for which
 *      its position is kept, which is its ttl, but at least 1 s and at most 5 s. Only the end of the watch ends that. A wake
 *      does not, nor a lost answer, a request that was given up, or a grant that was not accepted. The core also asks for a
 *      kept waiter, every 5 min.
 */

/**
 * One request to hold one name. Name and id together are never reused, so asking again always means the same request (R1).
 */
export interface Claim {
  readonly name: string
  /** 128 random bits, in hexadecimal. */
  readonly id: string
  /** The process that asks, for people to read. It decides nothing. */
  readonly owner: string
  /** Milliseconds that a grant lasts unless it is renewed. */
  readonly ttl: number
  /** Free text of the holder, visible to all. */
  readonly note: string
  /** May the claim join the queue? If not, a busy answer leaves nothing behind. */
  readonly queue: boolean
  /** The slots of the claim, and all others in use, are below it. At most `LARGEST_LIMIT`. @default 1: it holds alone */
  readonly limit?: number | undefined
  /** The number of slots that the claim wants: at most its limit, and at most `MOST_UNITS`. @default 1 */
  readonly units?: number | undefined
  /** The round trip of its requests in milliseconds (R8). @default what the store measures */
  readonly roundTrip?: number | undefined
  /** The token it was granted, once it holds. A store of several servers uses it to restore what one of them lost. */
  readonly token?: bigint | undefined
}

/** The claim holds the name for `ttl` ms by the server's clock. `token` outranks every earlier holder's. */
export interface Grant {
  readonly held: true
  readonly token: bigint
  /** Milliseconds, as the server granted them (R6). It may be more than the claim asked for. */
  readonly ttl: number
  /** The slots that it holds, in rising order. @default slot 0, which every claim of limit 1 holds */
  readonly slots?: readonly number[] | undefined
}

/** The claim does not hold: others hold what it wants, or are ahead of it in the queue. */
export interface Busy {
  readonly held: false
  /** Ask again after this many milliseconds unless a wake comes first. */
  readonly retryAfter: number
  /** The number of waiters ahead of this claim, where the store has a queue. For people: it may be a moment old. */
  readonly ahead?: number | undefined
  /** One of the holders. It may have ended while the request was carried out. */
  readonly holder?: LeaseRecord | undefined
  /**
   * The store subscribed to wakes of this claim before the request, and keeps them until `watch` is called. The core then
   * need not ask again after `watch`. @default false
   */
  readonly listens?: boolean | undefined
  /**
   * The store keeps the position of this claim while it is watched, for all waiters of this process at once, and wakes it
   * whenever it should ask (R9, R15). Only with `listens`. The core then ignores `retryAfter` once `watch` is armed.
   * @default false
   */
  readonly kept?: boolean | undefined
}

/** A hint to a waiter: ask again after `delay` ms. @default at once */
export type Wake = (delay?: number) => void

/** A lease or a waiter, as anybody may see it. */
export interface LeaseRecord {
  readonly name: string
  readonly state: 'held' | 'waiting'
  readonly owner: string
  /** The fencing token. Only for a holder. */
  readonly token?: bigint | undefined
  readonly note: string
  /** Milliseconds until the lease, or the position in the queue, lapses unless it is renewed. */
  readonly remaining: number
  /** Only for a waiter: its position in the queue. 0 is the next to hold. */
  readonly position?: number | undefined
  /** The limit of the claim. @default 1 */
  readonly limit?: number | undefined
  /** Only for a holder: its slots, in rising order. @default slot 0 */
  readonly slots?: readonly number[] | undefined
  /** Only for a waiter: the number of slots that it wants. @default 1 */
  readonly units?: number | undefined
}

/** One of the servers that a store is made of. */
export interface NodeRecord {
  /** Its address. */
  readonly name: string
  /** `quarantined`: it may have lost leases, and votes again in `remaining` ms. `unavailable`: it does not answer. */
  readonly state: 'serving' | 'quarantined' | 'unavailable'
  /** Milliseconds until a quarantined server votes again. */
  readonly remaining?: number | undefined
  /** Why it does not serve. */
  readonly reason?: string | undefined
}

/** What an engine promises, as data. The core computes limits from it, and the docs print it. */
export interface Guarantees {
  /** Which processes share the names: one process, those of one machine, or all that reach the server. */
  readonly scope: 'process' | 'machine' | 'network'
  /** A sentence: when two processes can believe that they hold the same lease. Fencing then decides. */
  readonly exclusion: string
  /** A sentence: what keeps tokens rising. */
  readonly token: string
  /** Does the store serve waiters in the order in which they came? */
  readonly order: 'first come, first served' | 'not promised'
  /**
   * `slots`: a name has as many slots as the limits of claims allow (R1). `exclusive`: every claim holds alone, and a limit is
   * ignored. A permit is then a lease on one of several names, without a queue. Readers and writers are refused.
   * @default exclusive
   */
  readonly sharing?: 'slots' | 'exclusive' | undefined
  /** Does the store notify waiters of a release, or do they poll? */
  readonly waiting: 'pushed' | 'polled'
  /** The shortest ttl in milliseconds that locks accept over this store. Its option `minTtl` sets another. */
  readonly minTtl: number
  /**
   * The longest ttl in milliseconds for which a lease outlives its process, and then ends on time for every other process. 0
   * if leases end with the connection, or if a process that has just begun does not know when they end.
   * @default any ttl
   */
  readonly maxUnattended?: number | undefined
  /** Share of the ttl that an `acquire` may take, up to 5 s (R3). @default 1/3 */
  readonly acquireShare?: number | undefined
  /** How soon the next waiter follows a holder that died. @default after the ttl */
  readonly takeover?: Takeover | undefined
  /** The clock that decides when a lease has ended. */
  readonly clock: string
  /** A sentence: what survives a restart or a failover of the server. */
  readonly durability: string
  /** What the store does not promise: a sentence for each. */
  readonly limits: readonly string[]
}

/**
 * The longest time from the last renewal of a holder that died until the next waiter holds: the ttl times `factor`,
 * rounded up to a multiple of `step`, at least `least`, plus `extra`. Durations are milliseconds. It applies to a cluster
 * that keeps its leader, with the default settings of its servers.
 */
export interface Takeover {
  /** Multiplies the ttl. @default 1 */
  readonly factor?: number
  /** Rounds up to a multiple of this. @default 1 */
  readonly step?: number
  readonly least: number
  readonly extra: number
}

/** The names to inspect: exactly one, or all with the same prefix. */
export type Query = { readonly name: string } | ({ readonly prefix: string } & Pacing)

/** Slows down a long search, and counts its requests. */
export interface Pacing {
  /**
   * A store that must search among keys of other programs calls this between two requests, and goes on when it
   * resolves. If it rejects, so does the iteration.
   */
  readonly between?: (() => Promise<void>) | undefined
  /**
   * A store that reads many names in one request calls this with the number of requests that it sends. For a name that
   * shares a request with others, the number is a fraction.
   */
  readonly sent?: ((requests: number) => void) | undefined
}

/** The parameters of `break`: which leases end, and who ends them. */
export interface BreakParameters {
  /** The person or process that breaks the lease, for people to read. It decides nothing. */
  readonly by: string
  /** Ends only the lease with this token. @default the leases of all holders */
  readonly token?: bigint | undefined
  /** Ends only the lease that has this slot. @default the leases of all holders */
  readonly slot?: number | undefined
}

/** The largest limit of a claim. Readers have this limit. */
export const LARGEST_LIMIT: number = 2 ** 31 - 1

/** The most slots of one claim. */
export const MOST_UNITS = 64

/** Identifies a claim without its parameters. */
export type ClaimKey = Pick<Claim, 'name' | 'id' | 'token'>

/**
 * An engine. A call that rejects has an unknown outcome. If it rejects with a `LeaseError` that is not `retryable`,
 * asking again is useless. Its `retryAfter` means that the store is alive and when to ask again. `signal` ends the
 * caller's interest, never what the server does.
 */
export interface Store extends AsyncDisposable {
  /** The kind of store, such as `sqlite` or `redis cluster`, for people to read. */
  readonly kind: string
  readonly guarantees: Guarantees
  /** Requests the name, and says whether the claim holds it now. R1 to R3, R5, R6, R8. */
  acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy>
  /** Makes the lease last `ttl` from now. `undefined`: the lease is certainly gone. R3, R5, R6. */
  renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined>
  /** Changes the note of the claim that holds. False: the lease is certainly gone. R3, R7. */
  annotate(claim: Claim, signal: AbortSignal): Promise<boolean>
  /** Withdraws a claim that holds, waits, or has not arrived yet. R4. */
  release(key: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'>
  /**
   * Calls `lost` once the store finds out by itself that the lease is gone, such as with its session (R12). Returns a
   * function that calls this off. @default losses are found by renewals
   */
  onLoss?(key: ClaimKey, lost: () => void): () => void
  /** Resolves once armed. From then until `signal` aborts, `wake` may be called (R9), and the claim may be kept (R15). */
  watch?(claim: Claim, wake: Wake, signal: AbortSignal): Promise<void>
  /**
   * The servers of the store if it is made of several, then the holders, each followed by its waiters in order where the
   * store has a queue (R11).
   */
  inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord | NodeRecord>
  /**
   * Ends the leases of the holders. Answers the token that now outranks theirs, or `undefined` if there was no such lease
   * (R10).
   */
  break(name: string, parameters: BreakParameters, signal: AbortSignal): Promise<bigint | undefined>
}
