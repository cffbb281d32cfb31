import type { Rules } from './rules.ts'

/** Nobody's lease: claims count from 1. */
export const NOBODY = 0

/** One node's memory of the one name, and what each claim has heard from the node. */
export interface Member {
  /** Is the member in the same state as the one before? */
  isRepeated: boolean
  counter: number
  owner: number
  /** Number of the owner's attempt that the lease is of. */
  attempt: number
  token: number
  /** Which of the owner's requests last set the time to live: attempts first, then renewals. */
  end: number
  /** Whether the node has lost its memory, and so is in quarantine for good. */
  forgot: boolean
  /** By attempt: the token that a counted vote was answered with; 0 is none. */
  seen: number[]
  /** By attempt: whether a COMMIT's acknowledgement was received; until then, whether a vote counts of which nothing else matters. */
  acked: boolean[]
  /** By claim: the answer to the renewal under way. */
  answer: number[]
  /** By claim: the round whose renewal may set the lease again; 0 is none. */
  restoring: number[]
  /** By claim: whether its release was carried out here. */
  released: boolean[]
}

export type Answer = 'held' | 'free' | 'lost'

/** Whom a message is from: the claim, the number of its attempt, and how its time to live compares. */
export interface Sender {
  claim: number
  attempt: number
  end: number
}

/** VOTE: `raised` is what the counter becomes if the lease is free. Answers the token, or 0 if another has it. */
export function vote(member: Member, from: Sender, raised: number): number {
  if (member.owner === NOBODY) {
    member.counter = raised
    hold(member, from, raised)
  } else if (member.owner === from.claim) {
    member.attempt = Math.max(member.attempt, from.attempt)
    member.end = Math.max(member.end, from.end)
  } else return 0
  return member.token
}

/**
 * COMMIT: `seen` is 0 for a node whose vote was not counted, where only the claim could be compared. A node also refuses one of an
 * earlier attempt, which here is the same as a request that is lost.
 */
export function commit(member: Member, claim: number, seen: number, token: number, rules: Rules): boolean {
  if (member.owner !== claim) return false
  if (rules.match && seen !== 0) {
    if (member.token !== seen) return false
    member.counter = token
    member.token = token
  } else {
    member.counter = Math.max(member.counter, token)
    member.token = Math.max(member.token, token)
  }
  return true
}

/** RENEW, which sets the lease again if `restore`. */
export function renew(member: Member, from: Sender, token: number, restore: boolean, rules: Rules): Answer {
  if (member.owner === from.claim) {
    if (member.counter > token) return 'lost'
    member.counter = token
    member.token = token
    if (rules.renewAttempt) member.attempt = Math.max(member.attempt, from.attempt)
    member.end = Math.max(member.end, from.end)
    return 'held'
  }
  if (member.owner !== NOBODY || (rules.restoreBelow && member.counter > token)) return 'lost'
  if (!restore) return 'free'
  member.counter = token
  hold(member, rules.restoreAttempt ? from : { ...from, attempt: 0 }, token)
  return 'held'
}

/** RELEASE: `raised` is a number above the token. */
export function release(member: Member, claim: number, raised: number, rules: Rules): boolean {
  if (member.owner !== claim && member.owner !== NOBODY) return false
  free(member)
  if (rules.releaseRaises) member.counter = Math.max(member.counter, raised)
  return true
}

/** YIELD, the withdrawal of a vote. */
export function withdraw(member: Member, from: Sender, rules: Rules): boolean {
  if (member.owner !== from.claim || (rules.yieldAttempt && member.attempt > from.attempt)) return false
  free(member)
  return true
}

export function free(member: Member): void {
  member.owner = NOBODY
  member.attempt = 0
  member.token = 0
  member.end = 0
}

function hold(member: Member, from: Sender, token: number): void {
  member.owner = from.claim
  member.attempt = from.attempt
  member.token = token
  member.end = from.end
}
