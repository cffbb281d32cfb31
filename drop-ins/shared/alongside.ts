import type { LeaseRecord, NodeRecord } from '../../src/index.ts'
import { LeaseError } from '../../src/index.ts'
import type { BreakParameters, Busy, Claim, ClaimKey, Grant, Guarantees, Query, Store, Wake } from '../../src/store.ts'
import type { Foreign, OldLocks } from './old-locks.ts'

export interface AlongsideOptions {
  /** The prefix of the store's own keys. */
  readonly prefix: string
  /** `hold`: a lease is held only with the lock of the old library. `look`: it is not granted while that is held. */
  readonly mode: 'hold' | 'look'
  /** Closes the clients of the old locks that were made for this store. */
  close(): void
}

const OLD = 'a process of the old library'
const WAITS = `waits for ${OLD}`

/** Milliseconds. The old libraries do not notify, so both sides poll. */
const SHORTEST_PAUSE = 10
const LONGEST_PAUSE = 60

/** Milliseconds that a release waits for the old lock before it releases the lease. After a loss: for both. */
const LONGEST_RELEASE = 500

/**
 * A store whose leases exclude locks of the old libraries. The lease comes first, then the old lock, so only one of all
 * new processes competes with the old ones. The core sees one lease: its deadline is counted from before both requests.
 * The key of the old lock is the name.
 */
export class Alongside implements Store {
  readonly kind: string
  readonly guarantees: Guarantees
  readonly onLoss?: NonNullable<Store['onLoss']>
  readonly #store: Store
  readonly #old: OldLocks
  readonly #options: AlongsideOptions
  /** Ids of claims whose leases wait for the old lock, and show that. */
  readonly #waiting = new Set<string>()
  /** By the id of a claim: reports to its holder that the lease is lost. */
  readonly #losses = new Map<string, () => void>()

  constructor(store: Store, old: OldLocks, options: AlongsideOptions) {
    this.kind = store.kind
    this.guarantees = store.guarantees
    this.#store = store
    this.#old = old
    this.#options = options
    const onLoss = store.onLoss?.bind(store)
    if (options.mode === 'hold') this.onLoss = (claim, lost) => this.#onLoss(claim, lost)
    else if (onLoss) this.onLoss = onLoss
  }

  async acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    // As the key of an old lock this would be a key of the store, such as the lease of another name.
    if (claim.name.startsWith(`${this.#options.prefix}:`))
      throw new LeaseError(
        'INVALID_ARGUMENT',
        `${JSON.stringify(claim.name)} begins with the prefix of Holdfast's own keys: give another name or prefix`,
      )
    const looking = this.#options.mode === 'look' ? this.#old.look(claim.name, signal) : undefined
    looking?.catch(() => {}) // is awaited later
    const answer = await this.#store.acquire(claim, signal)
    if (!answer.held) return answer
    signal.throwIfAborted()
    const foreign = await (looking ?? this.#old.acquire(claim.name, claim.id, Math.ceil(claim.ttl), signal))
    if (foreign) return await this.#wait(claim, foreign, signal)
    if (this.#waiting.delete(claim.id)) await this.#store.annotate(claim, signal).catch(() => {})
    return atMost(claim.ttl, answer)
  }

  async renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    if (this.#options.mode === 'look') return this.#store.renew(claim, signal)
    signal.throwIfAborted()
    const late = new AbortController().signal // an answer that comes after the request was given up counts as well
    const [grant, extended] = await Promise.all([
      this.#store.renew(claim, signal).then(grant => grant ?? this.#lose(claim)),
      this.#old.extend(claim.name, claim.id, Math.ceil(claim.ttl), late).then(foreign => !foreign || this.#lose(claim)),
    ])
    return grant && extended && atMost(claim.ttl, grant)
  }

  annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    return this.#store.annotate(claim, signal)
  }

  async release(claim: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    this.#waiting.delete(claim.id)
    const limit = AbortSignal.any([signal, AbortSignal.timeout(LONGEST_RELEASE)])
    // If it fails, the old lock expires.
    if (this.#options.mode === 'hold') await this.#old.release(claim.name, claim.id, limit).catch(() => {})
    return await this.#store.release(claim, signal)
  }

  async watch(claim: Claim, wake: Wake, signal: AbortSignal): Promise<void> {
    await this.#store.watch?.(claim, wake, signal)
  }

  inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord | NodeRecord> {
    return this.#store.inspect(query, signal)
  }

  /** The holder withdraws the old lock once it finds that its lease is gone, by its next renewal. */
  break(name: string, parameters: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#store.break(name, parameters, signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#options.close()
    await this.#store[Symbol.asyncDispose]()
  }

  #onLoss(claim: ClaimKey, lost: () => void): () => void {
    const callOff = (): void => {
      stop?.()
      this.#losses.delete(claim.id)
    }
    const loseOnce = (): void => {
      callOff()
      lost()
    }
    const stop = this.#store.onLoss?.(claim, loseOnce)
    this.#losses.set(claim.id, loseOnce)
    return callOff
  }

  /** Reports the loss, then releases the old lock and the lease. The holder need not wait for the renewal to end. */
  async #lose(claim: Claim): Promise<undefined> {
    this.#losses.get(claim.id)?.()
    const limit = AbortSignal.timeout(LONGEST_RELEASE)
    await Promise.allSettled([this.#old.release(claim.name, claim.id, limit), this.#store.release(claim, limit)])
  }

  /** The claim keeps its lease, and asks again after a random pause. One that does not queue releases it. */
  async #wait(claim: Claim, { remaining }: Foreign, signal: AbortSignal): Promise<Busy> {
    const { name, id, ttl, queue } = claim
    if (!queue) await this.#store.release(claim, signal)
    else if (!this.#waiting.has(id)) {
      this.#waiting.add(id)
      await this.#store.annotate({ ...claim, note: WAITS }, signal).catch(() => {})
    }
    const pause = SHORTEST_PAUSE + Math.random() * (LONGEST_PAUSE - SHORTEST_PAUSE)
    const holder: LeaseRecord = { name, state: 'held', owner: OLD, note: '', remaining }
    return { held: false, retryAfter: Math.min(pause, ttl / 4), holder }
  }
}

function atMost(ttl: number, grant: Grant): Grant {
  return { ...grant, ttl: Math.min(grant.ttl, ttl) }
}
