import type { LeaseError } from '../../contract/errors.ts'
import { events } from '../../contract/events.ts'
import type { Busy, Claim } from '../../contract/store.ts'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import { commonToken, latest, mostAlike } from './holdings.ts'
import type { Answer, Holding, Member, Vote } from './member.ts'
import type { Node } from './node.ts'
import { askAgainAfter, placeLifetime } from './queue.ts'
import type { Quorum, Tally } from './quorum.ts'

/** The pause in milliseconds before a claim asks again when no claim got a majority. It is random between these. */
const [SHORTEST_PAUSE, LONGEST_PAUSE] = [50, 150]

type Ballot = Vote | undefined

export type Result =
  | { readonly kind: 'won'; readonly token: number }
  /** `busy`: another claim has a majority. `tie`: no claim has one. */
  | { readonly kind: 'busy' | 'tie'; readonly busy: Busy }
  | { readonly kind: 'unavailable'; readonly error: LeaseError }

/**
 * One attempt of a claim to get the votes of a majority. Its token must be higher than every earlier token of a majority.
 * So it is the highest token of the votes, and is written back to a majority (Attiya, Bar-Noy, Dolev 1995: "Sharing memory
 * robustly in message-passing systems"). An attempt may fail, so it needs no consensus.
 */
export class Attempt {
  readonly #quorum: Quorum
  readonly #claim: Claim
  readonly #number: number
  #tally: Tally<Ballot> | undefined
  /** Votes that came after the poll was settled. They are also conceded if the attempt is not won. */
  readonly #late: [Node, Ballot, LeaseError | undefined][] = []
  #isConceded = false
  /** May others have seen the votes of a majority? They then wait for the end of a lease, and must be woken. */
  #wasMajority = false

  /** `number` is higher than those of all earlier attempts of the claim. */
  constructor(quorum: Quorum, claim: Claim, number: number) {
    this.#quorum = quorum
    this.#claim = claim
    this.#number = number
  }

  /** Runs the attempt. If it does not win, it concedes its votes. */
  async run(): Promise<Result> {
    const tally = await this.#vote()
    this.#tally = tally
    const token = highest(tally)
    let rounds = 1
    let isWon = tally.count(isGranted) >= this.#quorum.majority
    if (isWon && tally.count(vote => isGranted(vote) && vote.token === token) < this.#quorum.majority) {
      rounds = 2
      isWon = await this.#commit(tally, token)
    }
    const result: Result = isWon ? { kind: 'won', token } : this.#lost(tally)
    if (events.votes_counted.hasSubscribers)
      events.votes_counted.publish({ name: this.#claim.name, outcome: result.kind, rounds })
    if (!isWon) await this.concede()
    return result
  }

  /** Concedes all votes, including those whose answers were lost. Waits for the nodes that answer. */
  async concede(): Promise<void> {
    this.#isConceded = true
    const { counted, failed } = this.#tally ?? { counted: [], failed: [] }
    const granted = counted.filter(({ value }) => isGranted(value))
    const unknown = failed.filter(({ error }) => error.code === 'OUTCOME_UNKNOWN')
    this.#wasMajority = granted.length + unknown.length >= this.#quorum.majority
    for (const { node } of unknown) void this.#concedeAt(node)
    for (const answer of this.#late.splice(0)) this.#concedeLate(...answer)
    await Promise.all(granted.map(({ node }) => this.#concedeAt(node)))
  }

  #vote(): Promise<Tally<Ballot>> {
    const { majority } = this.#quorum
    const judge = (tally: Tally<Ballot>): Tally<Ballot> | undefined => {
      const granted = tally.count(isGranted)
      if (granted >= majority) return tally
      if (granted + tally.pending >= majority) return undefined
      const counted = tally.counted.length
      if (counted < majority && counted + tally.pending >= majority) return undefined
      // The attempt has failed. When to ask again depends on whether another claim has a majority.
      const most = mostHeld(tally).length
      return most >= majority || most + tally.pending < majority ? tally : undefined
    }
    return this.#quorum.poll(member => member.vote(this.#claim, this.#number), judge, {
      late: (node, vote, error) => {
        if (this.#isConceded) this.#concedeLate(node, vote, error)
        else this.#late.push([node, vote, error])
      },
    })
  }

  /**
   * Commits the token only at nodes whose votes were counted: another vote may have come after a rival conceded its vote.
   */
  async #commit(tally: Tally<Ballot>, token: number): Promise<boolean> {
    const { majority } = this.#quorum
    const seen = new Map<Member, number>()
    const nodes: Node[] = []
    for (const { node, value } of tally.counted) {
      if (!isGranted(value)) continue
      seen.set(node.member, value.token)
      nodes.push(node)
    }
    const judge = (answers: Tally<boolean>): { isDone: boolean } | undefined => {
      const done = answers.count(isDone => isDone)
      if (done >= majority) return { isDone: true }
      return done + answers.pending < majority ? { isDone: false } : undefined
    }
    const put = (member: Member): Promise<Answer<boolean>> =>
      member.commit(this.#claim, this.#number, seen.get(member) ?? 0, token)
    return (await this.#quorum.poll(put, judge, { nodes })).isDone
  }

  #concedeLate(node: Node, vote: Ballot, error: LeaseError | undefined): void {
    if (isGranted(vote) || error?.code === 'OUTCOME_UNKNOWN') void this.#concedeAt(node)
  }

  #concedeAt(node: Node): Promise<unknown> {
    return this.#quorum.tell(node, member => member.concede(this.#claim, this.#number, this.#wasMajority))
  }

  #lost(tally: Tally<Ballot>): Result {
    const { majority } = this.#quorum
    if (tally.counted.length < majority) return { kind: 'unavailable', error: this.#quorum.unavailable(tally) }
    const most = mostHeld(tally)
    const kind = most.length >= majority ? 'busy' : 'tie'
    return { kind, busy: this.#busy(tally, kind === 'busy' ? most : undefined) }
  }

  #busy(tally: Tally<Ballot>, held: readonly Holding[] | undefined): Busy {
    const { majority, environment } = this.#quorum
    const { name, ttl, queue } = this.#claim
    if (tally.count(vote => vote?.kind === 'withdrawn') > 0) return { held: false, retryAfter: LONGEST_REQUEST }
    const busy = tally.counted.flatMap(({ value }) => (value?.kind === 'busy' ? [value] : []))
    const ahead = middle(busy.map(vote => vote.ahead))
    const listens = busy.filter(vote => vote.listens).length >= majority
    if (!held) {
      const pause = SHORTEST_PAUSE + (LONGEST_PAUSE - SHORTEST_PAUSE) * environment.random()
      return { held: false, retryAfter: Math.min(pause * (1 + ahead), placeLifetime(ttl) / 3), ahead, listens }
    }
    const { owner, note } = latest(held) as Holding
    // The name is free when the free votes and those that have lapsed are a majority.
    const lapses = busy.map(({ holder }) => holder.remaining).sort((a, b) => a - b)
    const remaining = lapses[majority - tally.count(isGranted) - 1] ?? 0
    return {
      held: false,
      retryAfter: askAgainAfter(remaining, ahead, ttl, queue),
      ahead,
      listens,
      holder: { name, state: 'held', owner, token: BigInt(commonToken(held)), note, remaining },
    }
  }
}

function isGranted(vote: Ballot): vote is Extract<Vote, { kind: 'granted' }> {
  return vote?.kind === 'granted'
}

function highest({ counted }: Tally<Ballot>): number {
  let highest = 0
  for (const { value } of counted) if (isGranted(value)) highest = Math.max(highest, value.token)
  return highest
}

/** The holdings of the rival that has the most votes. */
function mostHeld({ counted }: Tally<Ballot>): readonly Holding[] {
  return mostAlike(counted.flatMap(({ value }) => (value?.kind === 'busy' ? [value.holder] : [])))
}

function middle(numbers: number[]): number {
  return numbers.sort((a, b) => a - b)[numbers.length >> 1] ?? 0
}
