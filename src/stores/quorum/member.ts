import type { LeaseError } from '../../contract/errors.ts'
import type { Claim, ClaimKey, LeaseRecord, Wake } from '../../contract/store.ts'

/**
 * One of the independent servers that a quorum is made of. It decides alone, and never waits. What it grants is a vote;
 * a lease is what a majority has voted for. Tokens are numbers below 2^53 here. Calls reject as those of a `Store` do.
 */
export interface Member {
  /** Its address, for people. */
  readonly name: string
  /**
   * Votes for the claim if the name is free or the claim's own, with a token of at least `attempt` and above all that it
   * gave before. `undefined` if it may have forgotten votes: then it casts none. `attempt` is in microseconds.
   */
  vote(claim: Claim, attempt: number): Promise<Answer<Vote | undefined>>
  /** Raises the token of its vote to `token`, if it is this claim's still and of the token `seen`. */
  commit(claim: Claim, seen: number, token: number): Promise<Answer<boolean>>
  /**
   * `restore`: vote for the claim again if it has forgotten it and given nobody a higher token; with its note, of a
   * revision below those of `annotate`, and above that of a vote.
   */
  renew(claim: Claim, restore: boolean): Promise<Answer<Renewal>>
  /** Changes the note of its vote to the claim's, unless it has one of this `revision` or a higher one. As `renew` else. */
  annotate(claim: Claim, revision: number): Promise<Answer<Renewal>>
  /** Takes its vote back and the claim out of its line; true if there was any of that. Wakes the first of the line. */
  release(key: ClaimKey): Promise<Answer<boolean>>
  /** Takes its vote back that this attempt or an earlier one got, and refuses those of them that come later. */
  concede(key: ClaimKey, attempt: number): Promise<Answer<boolean>>
  /** Frees the name; its last token, raised to at least `floor` if it was held. */
  break(name: string, floor: number): Promise<Answer<Broken>>
  /** Raises the last token of a name that is free to `token`; is it that high now? */
  raise(name: string, token: number): Promise<Answer<boolean>>
  /** The holder, and a page of the queue that begins after `from` waiters. */
  look(name: string, from: number): Promise<Answer<Sight>>
  /** All names that begin so and are voted or waited for. */
  names(prefix: string): Promise<Answer<readonly string[]>>
  /** As `watch` of a `Store`. */
  watch(key: ClaimKey, wake: Wake, signal: AbortSignal): Promise<void>
  /** Does this failure of a request show that the server answers? */
  isAnswer(failure: LeaseError): boolean
  close(): void
}

/** What a member says, and whether that counts. */
export interface Answer<Value> {
  readonly value: Value
  /** Milliseconds until its answers count in a majority, as it may have forgotten; 0: they do. `undefined`: not known. */
  readonly votesIn: number | undefined
}

export type Vote =
  | { readonly kind: 'granted'; readonly token: number }
  | {
      readonly kind: 'busy'
      readonly holder: Holding
      /** Waiters before this one, in the line of this member. */
      readonly ahead: number
      /** As of a `Busy`. */
      readonly listens: boolean
    }
  | { readonly kind: 'withdrawn' }

/** Whom a member has voted for. */
export interface Holding extends Pick<LeaseRecord, 'owner' | 'note' | 'remaining'> {
  readonly id: string
  readonly token: number
  /** Of the note: the highest is that of the latest. */
  readonly revision: number
}

export interface Renewal {
  /** `free`: nobody's, and it could be the claim's again. `lost`: another's, or another's since. */
  readonly state: 'held' | 'free' | 'lost'
  /** Of its vote, if that is held. */
  readonly token: number
}

export interface Broken {
  readonly wasHeld: boolean
  readonly token: number
}

/** All about one name at one member. */
export interface Sight {
  readonly holder: Holding | undefined
  readonly line: readonly Omit<Holding, 'token' | 'revision'>[]
  /** Does the queue continue after this page? @default false */
  readonly hasMore?: boolean | undefined
}
