import { type Attempt, type Claim, COMMITTING, GRANTED, IDLE, VOTING, WITHDRAWN } from './claim.ts'
import { repeats, sortColumns } from './columns.ts'
import { type Member, NOBODY } from './member.ts'
import type { Plan } from './plan.ts'

const MOST_NUMBERS = 128

/** One state of the model, to be changed in place, and read from and written to bytes. */
export class World {
  readonly plan: Plan
  readonly majority: number
  readonly members: Member[]
  /** By claim; claims count from 1, and 0 is nobody. */
  readonly claims: Claim[]
  readonly attempts: Attempt[]
  readonly size: number
  readonly isTimed: boolean
  /** The greatest number in use. */
  top = 0
  /** What was wrong with the last grant. */
  violation = ''
  readonly #columnSize: number
  readonly #ranks = new Uint8Array(MOST_NUMBERS)
  readonly #scale: number
  /** Counters never fall and a lease's token is its counter, so what COMMIT compares is passed once it is below. */
  readonly #isMonotone: boolean

  constructor(plan: Plan) {
    const { rules } = plan
    this.plan = plan
    this.majority = Math.floor(plan.members / 2) + 1
    this.attempts = plan.attempts.flatMap((count, index) =>
      Array.from({ length: count }, (_, at) => {
        return { claim: index + 1, number: at + 1, isLast: at + 1 === count, phase: IDLE, token: 0, low: 0 }
      }),
    )
    this.claims = [0, ...plan.attempts].map(() => ({ relies: 0, round: 0 }))
    this.members = Array.from({ length: plan.members }, () => this.#newMember())
    this.isTimed = plan.leasesEnd === 'unneeded'
    this.#isMonotone = rules.match && rules.countedOnly && rules.restoreBelow && rules.quarantine
    this.#scale = plan.numbers === 'ordered' ? 2 : 1
    this.#columnSize = 3 + this.attempts.length + (this.isTimed ? 1 + plan.attempts.length : 0)
    const rest = this.attempts.length * 3 + (this.isTimed ? this.claims.length * 2 : 0)
    this.size = Math.ceil((plan.members * this.#columnSize + rest) / 4) * 4
  }

  /** If ordered, numbers are read with gaps between, so that every place in their order has a number. */
  read(bytes: Uint8Array, start: number): void {
    const scale = this.#scale
    const hop = this.attempts.length
    let at = start
    const next = (): number => bytes[at++] ?? 0
    this.top = 0
    for (const member of this.members) {
      member.isRepeated = at > start && repeats(bytes, at, this.#columnSize)
      member.counter = next() * scale
      member.token = next() * scale
      const packed = next()
      member.forgot = (packed & 1) === 1
      member.owner = (packed >> 1) & 7
      member.attempt = packed >> 4
      this.top = Math.max(this.top, member.counter)
      for (let index = 0; index < hop; index += 1) {
        const value = next()
        member.seen[index] = (value >> 1) * scale
        member.acked[index] = (value & 1) === 1
        this.top = Math.max(this.top, (value >> 1) * scale)
      }
      if (!this.isTimed) continue
      member.end = next()
      for (let claim = 1; claim < this.claims.length; claim += 1) {
        const value = next()
        member.answer[claim] = value & 3
        member.restoring[claim] = (value >> 2) & 3
        member.released[claim] = (value & 16) !== 0
      }
    }
    for (const attempt of this.attempts) {
      attempt.phase = next()
      attempt.token = next() * scale
      attempt.low = next() * scale
      this.top = Math.max(this.top, attempt.token, attempt.low)
    }
    if (!this.isTimed) return
    for (const claim of this.claims) {
      claim.relies = next()
      claim.round = next()
    }
  }

  /** States that differ only in the order of nodes, or in what nothing can depend on any more, have the same bytes. */
  write(bytes: Uint8Array, start: number): void {
    this.#forget()
    const ranks = this.#rank()
    let at = start
    for (const member of this.members) {
      bytes[at++] = ranks[member.counter] ?? 0
      bytes[at++] = ranks[member.token] ?? 0
      bytes[at++] = (member.forgot ? 1 : 0) | (member.owner << 1) | (member.attempt << 4)
      for (let index = 0; index < this.attempts.length; index += 1)
        bytes[at++] = ((ranks[member.seen[index] ?? 0] ?? 0) << 1) | (member.acked[index] ? 1 : 0)
      if (!this.isTimed) continue
      bytes[at++] = member.end
      for (let claim = 1; claim < this.claims.length; claim += 1)
        bytes[at++] =
          (member.answer[claim] ?? 0) | ((member.restoring[claim] ?? 0) << 2) | (member.released[claim] ? 16 : 0)
    }
    sortColumns(bytes, start, this.members.length, this.#columnSize)
    for (const attempt of this.attempts) {
      bytes[at++] = attempt.phase
      bytes[at++] = ranks[attempt.token] ?? 0
      bytes[at++] = ranks[attempt.low] ?? 0
    }
    if (this.isTimed)
      for (const claim of this.claims) {
        bytes[at++] = claim.relies
        bytes[at++] = claim.round
      }
    while (at < start + this.size) bytes[at++] = 0
  }

  name(claim: number): string {
    return String.fromCharCode(64 + claim)
  }

  /** The attempt that the claim was granted with. */
  granted(claim: number): Attempt | undefined {
    for (const attempt of this.attempts) if (attempt.claim === claim && attempt.phase === GRANTED) return attempt
    return undefined
  }

  /** Claims that may do the same are interchangeable, so they begin in order. */
  mayBegin(claim: number): boolean {
    const { attempts } = this.plan
    if (claim === 1 || attempts[claim - 1] !== attempts[claim - 2]) return true
    return this.attempts.some(({ claim: other, phase }) => other === claim - 1 && phase !== IDLE)
  }

  /** Can no token be wrong any more, for want of one to be handed out or of another to compare it with? */
  isOver(): boolean {
    let open = 0
    let granted = 0
    for (let claim = 1; claim < this.claims.length; claim += 1)
      if (this.granted(claim)) granted += 1
      else if (this.attempts.some(attempt => attempt.claim === claim && attempt.isLast && attempt.phase !== WITHDRAWN))
        open += 1
    return open === 0 || open + granted < 2
  }

  isHighest(number: number): boolean {
    return number === this.plan.numbers
  }

  grant(attempt: Attempt): true {
    const name = this.name(attempt.claim)
    for (const other of this.attempts) {
      if (other.phase !== GRANTED) continue
      if (other.token === attempt.token) this.violation = `${name} and ${this.name(other.claim)} have the same token`
      if (this.isTimed && (this.claims[other.claim]?.relies ?? 0) > 0)
        this.violation = `${name} and ${this.name(other.claim)} hold at once`
    }
    if (attempt.token < attempt.low) this.violation = `${name}'s token is lower than one handed out before it began`
    attempt.phase = GRANTED
    return true
  }

  forgetVotes(attempt: Attempt): void {
    const index = this.attempts.indexOf(attempt)
    for (const member of this.members) {
      member.seen[index] = 0
      member.acked[index] = false
    }
  }

  count(test: (member: Member) => boolean): number {
    let count = 0
    for (const member of this.members) if (test(member)) count += 1
    return count
  }

  #forget(): void {
    let index = -1
    for (const attempt of this.attempts) {
      index += 1
      if (attempt.phase === VOTING && this.#isMonotone) this.#spend(index)
      if (attempt.phase < COMMITTING) continue
      let hopes = 0
      let isPending = false
      for (const member of this.members) {
        const seen = member.seen[index] ?? 0
        const isAcked = member.acked[index] ?? false
        if (this.#isMonotone && (seen < member.counter || isAcked || member.forgot)) member.seen[index] = 0
        if (attempt.phase !== COMMITTING) member.acked[index] = false
        if (member.seen[index]) isPending = true
        if (member.seen[index] || isAcked) hopes += 1
      }
      if (attempt.phase === COMMITTING && this.#isMonotone && !this.isTimed && hopes < this.majority) {
        attempt.phase = WITHDRAWN
        for (const member of this.members) member.acked[index] = false
      }
      if (attempt.phase === WITHDRAWN && this.#isMonotone && !isPending) attempt.token = 0
      if (attempt.phase > COMMITTING) attempt.low = 0
    }
    // Leases that end at any moment make YIELD nothing new, and nothing else compares attempts.
    if (!this.isTimed) for (const member of this.members) member.attempt = 0
  }

  /** A vote lower than another, for a lease that has ended, counts for the majority, but what it said is nothing now. */
  #spend(index: number): void {
    let most = 0
    for (const member of this.members) most = Math.max(most, member.seen[index] ?? 0)
    for (const member of this.members) {
      const seen = member.seen[index] ?? 0
      if (seen === 0 || seen === most || seen >= member.counter) continue
      member.seen[index] = 0
      member.acked[index] = true
    }
  }

  /** By number, what it is written as: itself, or its place in the order of all numbers. */
  #rank(): Uint8Array {
    const ranks = this.#ranks
    if (this.#scale === 1) {
      if (ranks[1] === 0) for (let number = 0; number < MOST_NUMBERS; number += 1) ranks[number] = number
      return ranks
    }
    ranks.fill(0, 0, this.top + 3)
    for (const member of this.members) {
      ranks[member.counter] = 1
      ranks[member.token] = 1
      for (const seen of member.seen) ranks[seen] = 1
    }
    for (const { token, low } of this.attempts) {
      ranks[token] = 1
      ranks[low] = 1
    }
    let rank = 0
    ranks[0] = 0
    for (let number = 1; number <= this.top + 2; number += 1) if (ranks[number]) ranks[number] = ++rank
    return ranks
  }

  #newMember(): Member {
    return {
      counter: 0,
      isRepeated: false,
      owner: NOBODY,
      attempt: 0,
      token: 0,
      end: 0,
      forgot: false,
      seen: this.attempts.map(() => 0),
      acked: this.attempts.map(() => false),
      answer: this.claims.map(() => 0),
      restoring: this.claims.map(() => 0),
      released: this.claims.map(() => false),
    }
  }
}
