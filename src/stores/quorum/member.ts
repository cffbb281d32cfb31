import type { LeaseError } from '../../contract/errors.ts'
import type { Claim, ClaimKey, LeaseRecord, Wake } from '../../contract/store.ts'

/**
 * One of the independent servers of a quorum. It decides alone and never waits. It grants votes, and a claim with the votes
 * of a majority has the lease. Tokens are numbers below 2^53 here. Calls reject like those of a `Store`.
 */
export interface Member {
  /** Its address, which is shown to people. */
  readonly name: string
  /**
   * Votes for the claim if the name is free, or if the claim already has its vote. The token is at least `attempt`, and
   * higher than all earlier tokens of the member. `undefined`: the member may have lost votes, so it casts none. `attempt`
   * is in microseconds.
   */
  vote(claim: Claim, attempt: number): Promise<Answer<Vote | undefined>>
  /** Raises the token of its vote to `token`, if the vote is still of this attempt of the claim and has the token `seen`. */
  commit(claim: Claim, attempt: number, seen: number, token: number): Promise<Answer<boolean>>
  /**
   * Renews its vote for the claim. With `restore` it votes again for a claim that has lost the vote, if it gave no other
   * claim a higher token. The note then has a revision below those of `annotate`, and above that of a vote. A renewal never
   * shortens one that has a higher `number`: over another connection it may arrive after that.
   */
  renew(claim: Claim, restore: boolean, number: number): Promise<Answer<Renewal>>
  /** Writes the claim's note to its vote, unless the vote has this `revision` or a higher one. Otherwise like `renew`. */
  annotate(claim: Claim, revision: number): Promise<Answer<Renewal>>
  /**
   * Takes back its vote and removes the claim from its queue. Resolves to true if there was either. Wakes the first waiter.
   */
  release(key: ClaimKey): Promise<Answer<boolean>>
  /**
   * Takes back a vote of this attempt or an earlier one, and refuses such votes that arrive later. Wakes the first waiter if
   * `wakes` is set.
   */
  concede(key: ClaimKey, attempt: number, wakes: boolean): Promise<Answer<boolean>>
  /**
   * Takes the vote back if one of `claims` has it, with no higher token. Unless a vote is left, it raises the last token to
   * `token`, which is higher than those of `claims`.
   */
  break(name: string, claims: Claims, token: number): Promise<Answer<Broken>>
  /** Reads the holder, and a page of the queue that begins after `from` waiters. @default no page */
  look(name: string, from?: number): Promise<Answer<Sight>>
  /** Searches for the names with the prefix that have a vote or waiters, with a request for each page. */
  names(prefix: string): AsyncIterator<readonly string[], void>
  /** See `watch` of a `Store`. */
  watch(key: ClaimKey, wake: Wake, signal: AbortSignal): Promise<void>
  /** Does this failure of a request show that the server answers? */
  isAnswer(failure: LeaseError): boolean
  close(): void
}

/** The ids of claims, and the highest token that each had a vote with. */
export type Claims = ReadonlyMap<string, number>

/** The answer of a member, and whether it counts. */
export interface Answer<Value> {
  readonly value: Value
  /** Milliseconds until its answers count in a majority: it may have lost votes. 0: they count. */
  readonly votesIn: number
}

export type Vote =
  | { readonly kind: 'granted'; readonly token: number }
  | {
      readonly kind: 'busy'
      readonly holder: Holding
      /** The number of waiters ahead of this one in the queue of this member. */
      readonly ahead: number
      /** See `listens` of a `Busy`. */
      readonly listens: boolean
    }
  | { readonly kind: 'withdrawn' }

/** The claim that has the vote of a member. */
export interface Holding extends Pick<LeaseRecord, 'owner' | 'note' | 'remaining'> {
  readonly id: string
  readonly token: number
  /** The revision of the note. The highest is the latest. */
  readonly revision: number
}

export interface Renewal {
  /**
   * `free`: no claim has the vote, and it can be restored. `lost`: another claim has it, or had it meanwhile, or its token is
   * higher than that of the lease.
   */
  readonly state: 'held' | 'free' | 'lost'
  /** The token of its vote, if the vote is held. */
  readonly token: number
}

export interface Broken {
  /** Did this request take a vote back? */
  readonly hasEnded: boolean
  /** Did this request raise the last token? */
  readonly isRaised: boolean
  /** The last token. */
  readonly token: number
}

/** What a member knows of one name. */
export interface Sight {
  readonly holder: Holding | undefined
  readonly queue: readonly Omit<Holding, 'token' | 'revision'>[]
  /** Does the queue continue after this page? @default false */
  readonly hasMore?: boolean | undefined
}
