import type { LeaseError } from '../../contract/errors.ts'
import type { Claim, ClaimKey, LeaseRecord, Wake } from '../../contract/store.ts'

/**
 * One of the independent servers of a quorum. It decides alone and never waits. It grants votes. A claim with the votes of
 * a majority has the lease. Tokens are numbers below 2^53 here. Calls reject as those of a `Store` do.
 */
export interface Member {
  /** Its address, for people. */
  readonly name: string
  /**
   * Votes for the claim if the name is free or the claim has its vote. The token is at least `attempt`, and above all its
   * earlier tokens. `undefined`: it may have lost votes, so it casts none. `attempt` is in microseconds.
   */
  vote(claim: Claim, attempt: number): Promise<Answer<Vote | undefined>>
  /** Raises the token of its vote to `token`, if the vote is still of this claim and has the token `seen`. */
  commit(claim: Claim, seen: number, token: number): Promise<Answer<boolean>>
  /**
   * `restore`: votes for the claim again if it lost the vote and gave nobody a higher token. The note then has a revision
   * below those of `annotate`, and above that of a vote.
   */
  renew(claim: Claim, restore: boolean): Promise<Answer<Renewal>>
  /** Writes the claim's note to its vote, unless that has this `revision` or a higher one. Otherwise as `renew`. */
  annotate(claim: Claim, revision: number): Promise<Answer<Renewal>>
  /** Takes back its vote and removes the claim from its queue. True if there was either. Wakes the first waiter. */
  release(key: ClaimKey): Promise<Answer<boolean>>
  /** Takes back a vote of this attempt or an earlier one, and refuses such votes that come later. */
  concede(key: ClaimKey, attempt: number): Promise<Answer<boolean>>
  /** Takes the vote back from the claim `id`, or from any. Answers the last token, raised to at least `floor` if it did. */
  break(name: string, id: string | undefined, floor: number): Promise<Answer<Broken>>
  /** Raises the last token of a free name to `token`. True if it is that high now. */
  raise(name: string, token: number): Promise<Answer<boolean>>
  /** The holder, and a page of the queue that begins after `from` waiters. */
  look(name: string, from: number): Promise<Answer<Sight>>
  /** All names with the prefix that have a vote or waiters. */
  names(prefix: string): Promise<Answer<readonly string[]>>
  /** As `watch` of a `Store`. */
  watch(key: ClaimKey, wake: Wake, signal: AbortSignal): Promise<void>
  /** Does this failure of a request show that the server answers? */
  isAnswer(failure: LeaseError): boolean
  close(): void
}

/** The answer of a member, and whether it counts. */
export interface Answer<Value> {
  readonly value: Value
  /** Milliseconds until its answers count in a majority: it may have lost votes. 0: they count. `undefined`: unknown. */
  readonly votesIn: number | undefined
}

export type Vote =
  | { readonly kind: 'granted'; readonly token: number }
  | {
      readonly kind: 'busy'
      readonly holder: Holding
      /** Waiters ahead of this one, in the queue of this member. */
      readonly ahead: number
      /** As of a `Busy`. */
      readonly listens: boolean
    }
  | { readonly kind: 'withdrawn' }

/** The claim that has the vote of a member. */
export interface Holding extends Pick<LeaseRecord, 'owner' | 'note' | 'remaining'> {
  readonly id: string
  readonly token: number
  /** Of the note. The highest is the latest. */
  readonly revision: number
}

export interface Renewal {
  /** `free`: no claim has the vote, and it can be restored. `lost`: another claim has it, or had it since. */
  readonly state: 'held' | 'free' | 'lost'
  /** Of its vote, if that is held. */
  readonly token: number
}

export interface Broken {
  readonly wasHeld: boolean
  readonly token: number
}

/** What a member knows of one name. */
export interface Sight {
  readonly holder: Holding | undefined
  readonly queue: readonly Omit<Holding, 'token' | 'revision'>[]
  /** Does the queue continue after this page? @default false */
  readonly hasMore?: boolean | undefined
}
