import { checkDuration, checkName, checkTtl, invalid } from '../contract/check.ts'
import type { Environment } from '../contract/environment.ts'
import { LeaseError } from '../contract/errors.ts'
import { randomId } from '../contract/random-id.ts'
import { isLease, visible } from '../contract/record.ts'
import { type Cancel, request, storeError } from '../contract/request.ts'
import { LONGEST_TEXT, MARKER_SUFFIX, markerOf } from '../contract/reserved.ts'
import type { Claim, LeaseRecord, Store } from '../contract/store.ts'
import { FIRST_TRY, LAST_REQUEST, LONGEST_TRY, requestLimit } from '../contract/time.ts'
import { withdraw } from './withdraw.ts'

/** The note of a marker: for people, and the token of the run, unless others may hold at the same time. */
const noteOf = (token?: bigint): string =>
  `the last run${token === undefined ? '' : ` (token ${token})`} succeeded: not run again until this ends`
const tokenIn = (note: string): bigint => BigInt(/\(token (\d+)\)/.exec(note)?.[1] ?? 0)
const LONGEST_NAME = LONGEST_TEXT - Buffer.byteLength(MARKER_SUFFIX)

/** What a marker needs from the locks. */
export interface MarkerCore extends Environment {
  readonly store: Store
}

/** A run that has succeeded. */
export interface Run {
  readonly owner: string
  /** Of its lease, if nobody else could hold at the same time. */
  readonly token?: bigint | undefined
}

/**
 * Remembers at the store that the work of a name has succeeded: a lease on `NAME␟ran` that nobody renews or releases, so the
 * clock of the store counts its time. It does not go through the locks, where it would be a lease that ends as lost.
 */
export class Marker {
  readonly #core: MarkerCore
  readonly #name: string
  readonly #within: number
  #written: Claim | undefined

  /** Throws `INVALID_ARGUMENT` if the store cannot remember the name for `within` ms. `what`: how the caller calls `within`. */
  constructor(core: MarkerCore, name: string, within: number, what = 'within') {
    const { kind, guarantees } = core.store
    const longest = guarantees.maxUnattended ?? Number.POSITIVE_INFINITY
    checkName(name)
    if (Buffer.byteLength(name) > LONGEST_NAME)
      throw invalid(`the name has ${Buffer.byteLength(name)} bytes: with ${what} at most ${LONGEST_NAME} are allowed`)
    checkDuration(within, what)
    if (longest === 0)
      throw invalid(
        `${what} needs a store that keeps a lease without its process, and knows when it ends, which ${kind} does not: use another store`,
      )
    if (within > longest)
      throw invalid(
        `${what} is ${within} ms, but ${kind} keeps a lease without its process for at most ${longest} ms: ` +
          'take a shorter time, or another store',
      )
    checkTtl(within, core.store, what)
    this.#core = core
    this.#name = name
    this.#within = within
  }

  /** Finds the marker of a recent success. Rejects within 2 s if the store does not answer. */
  async find(cancel?: Cancel): Promise<LeaseRecord | undefined> {
    const { store } = this.#core
    const name = markerOf(this.#name)
    const read = async (signal: AbortSignal): Promise<LeaseRecord | undefined> => {
      for await (const record of store.inspect({ name }, signal))
        if (isLease(record) && record.state === 'held') return visible({ ...record, name: this.#name })
      return undefined
    }
    try {
      return await this.#ask(LONGEST_TRY, read, cancel)
    } catch (error) {
      if (!LeaseError.is(error, 'OUTCOME_UNKNOWN')) throw error
      const message = `it is not known whether ${JSON.stringify(this.#name)} ran lately: ${error.message}`
      throw new LeaseError('STORE_UNAVAILABLE', message, { leaseName: this.#name, cause: error })
    }
  }

  /**
   * Writes the marker of a run that began at `began`, by the clock. Resolves to the error if that failed; never rejects. It
   * replaces the marker of a run with a lower token: that run has lost its lease, and may yet remove its marker. Without a
   * token, others may hold at the same time.
   */
  async write({ owner, token }: Run, began: number): Promise<LeaseError | undefined> {
    const { clock, store } = this.#core
    const left = Math.ceil(this.#within - (clock.now() - began))
    if (left <= 0) return undefined
    const { minTtl, acquireShare } = store.guarantees
    const ttl = Math.max(left, minTtl)
    const claim: Claim = { name: markerOf(this.#name), id: randomId(), owner, ttl, note: noteOf(token), queue: false }
    this.#written = claim
    const limit = Math.min(LONGEST_TRY, requestLimit(ttl, acquireShare))
    try {
      await this.#ask(limit, async signal => {
        for (;;) {
          signal.throwIfAborted()
          const answer = await store.acquire(claim, signal)
          if (answer.held) return
          const { holder } = answer
          // Over a majority, nobody may hold although the claim does not.
          if (!holder) throw new LeaseError('STORE_UNAVAILABLE', 'it is not known which run has a marker')
          if (token === undefined || tokenIn(holder.note) >= token) return
          await store.break(claim.name, { by: owner, token: holder.token }, signal)
        }
      })
      return undefined
    } catch (error) {
      return storeError(error)
    }
  }

  /** Removes what `write` wrote: the run does not count. Never rejects. */
  async remove(): Promise<void> {
    if (this.#written) await withdraw(this.#core, this.#written, true)
  }

  /** Asks up to twice within `limit` ms, because the connection may have been cut since the last run. */
  async #ask<Answer>(limit: number, send: (signal: AbortSignal) => Promise<Answer>, cancel?: Cancel): Promise<Answer> {
    const { clock } = this.#core
    const giveUp = clock.now() + limit
    try {
      return await request(clock, limit * FIRST_TRY, send, { cancel })
    } catch (error) {
      cancel?.throwIfCancelled()
      if (!storeError(error).retryable) throw error
      return request(clock, Math.max(giveUp - clock.now(), LAST_REQUEST), send, { cancel })
    }
  }
}
