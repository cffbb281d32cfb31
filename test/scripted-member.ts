import { type Environment, systemEnvironment } from '../src/contract/environment.ts'
import type { LeaseError } from '../src/contract/errors.ts'
import type { Claim } from '../src/contract/store.ts'
import type { Answer, Broken, Claims, Member, Renewal, Sight, Vote } from '../src/stores/quorum/member.ts'
import { Quorum } from '../src/stores/quorum/quorum.ts'

/** A node that a test controls. It records its requests. */
export class ScriptedMember implements Member {
  readonly name: string
  readonly asked: string[] = []
  votesIn = 0
  onVote: () => Vote | undefined | Promise<Vote> = () => granted(1)
  onCommit: () => boolean | Promise<boolean> = () => true
  onRenew: (restore: boolean) => Renewal | Promise<Renewal> = () => ({ state: 'held', token: 1 })
  onAnnotate: () => Renewal | Promise<Renewal> = () => ({ state: 'held', token: 1 })
  onRelease: () => boolean | Promise<boolean> = () => true
  onBreak: () => Broken | Promise<Broken> = () => ({ hasEnded: true, isRaised: true, token: 1 })
  onLook: () => Sight | Promise<Sight> = () => ({ holder: undefined, queue: [] })
  isAnswer: (error: LeaseError) => boolean = () => false

  constructor(name: string) {
    this.name = name
  }

  vote(): Promise<Answer<Vote | undefined>> {
    return this.#answer('vote', this.onVote)
  }

  commit(_claim: Claim, _attempt: number, seen: number, token: number): Promise<Answer<boolean>> {
    return this.#answer(`commit ${seen} ${token}`, this.onCommit)
  }

  renew(_claim: Claim, restore: boolean): Promise<Answer<Renewal>> {
    return this.#answer(restore ? 'restore' : 'renew', () => this.onRenew(restore))
  }

  annotate(claim: Claim, revision: number): Promise<Answer<Renewal>> {
    return this.#answer(`annotate ${claim.note} ${revision}`, this.onAnnotate)
  }

  release(): Promise<Answer<boolean>> {
    return this.#answer('release', this.onRelease)
  }

  concede(): Promise<Answer<boolean>> {
    return this.#answer('concede', () => true)
  }

  break(_name: string, claims: Claims, token: number): Promise<Answer<Broken>> {
    return this.#answer(`break ${[...claims].join(' ')} ${token}`, this.onBreak)
  }

  look(_name: string, from?: number): Promise<Answer<Sight>> {
    return this.#answer(from === undefined ? 'look' : `look ${from}`, this.onLook)
  }

  async *names(): AsyncGenerator<readonly string[], void> {}

  async watch(): Promise<void> {}

  close(): void {}

  async #answer<Value>(verb: string, answer: () => Value | Promise<Value>): Promise<Answer<Value>> {
    this.asked.push(verb)
    return { value: await answer(), votesIn: this.votesIn }
  }
}

export const granted = (token: number): Vote => ({ kind: 'granted', token })

/** The vote of another claim, for another `remaining` ms. */
export function busy(id: string, remaining = 1_000): Vote {
  return {
    kind: 'busy',
    holder: { id, token: 9, owner: id, note: '', revision: 0, remaining },
    ahead: 0,
    listens: false,
  }
}

export function never<Value>(): Promise<Value> {
  return new Promise(() => {})
}

export const claim: Claim = { name: 'a', id: 'own', owner: 'me', ttl: 1_000, note: '', queue: false }

/** A quorum over `size` nodes, with a timeout of 50 ms, and its nodes. */
export function quorumOf(size: number, environment: Environment = systemEnvironment()): [Quorum, ScriptedMember[]] {
  const members = Array.from({ length: size }, (_, index) => new ScriptedMember(`node ${index}`))
  return [new Quorum(members, 50, environment), members]
}
