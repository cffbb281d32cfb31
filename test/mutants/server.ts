import { LeaseError } from '../../src/contract/errors.ts'
import type {
  BreakParameters,
  Busy,
  Claim,
  ClaimKey,
  Grant,
  LeaseRecord,
  Query,
  Wake,
} from '../../src/contract/store.ts'
import { roundTripOf, TURN } from '../../src/contract/time.ts'
import { type Asker, type Held, Name } from '../../src/stores/rules/name.ts'
import { type Holder, type NameState, UNUSED } from '../../src/stores/rules/state.ts'
import type { NameClass } from '../model/name/model.ts'
import type { Flaw } from './flaws.ts'

/** The smallest server that keeps the contract, or keeps it except for one planted flaw. The rules of a name decide. */
export class Server {
  /** The shift of its wall clock, in milliseconds. */
  wallOffset = 0
  readonly #flaw: Flaw | undefined
  readonly #Name: NameClass
  readonly #names = new Map<string, NameState>()
  /** The last holder of each name, for the flaws that show or revive it. */
  readonly #last = new Map<string, Holder>()
  readonly #released = new Set<string>()
  readonly #broken = new Set<string>()
  readonly #wakes = new Map<string, Wake>()
  readonly #losses = new Map<string, () => void>()
  /** Claims that were changed in this turn of the event loop, for the flaws that race. */
  readonly #changed = new Set<string>()
  #counter = 0

  constructor(flaw?: Flaw, Rules: NameClass = Name) {
    this.#flaw = flaw
    this.#Name = Rules
  }

  acquire(claim: Claim, deadline: number): Grant | Busy {
    const now = this.#arrived(deadline, 'stale acquire takes the name')
    const { name: text, ttl } = claim
    if (this.#is('grant not seen by the next') && this.#changed.size > 0)
      this.#edit(text, state => ({ ...state, holders: state.holders.slice(0, -1) }))
    const name = this.#at(text)
    const asker = this.#askerOf(claim, name.state)
    const { id } = asker
    if (now > deadline) name.break()
    if (this.#is('copy granted again while under way') && this.#changed.has(id)) name.release(id)
    const answer = name.acquire(asker)
    if (answer.held) {
      this.#change(id)
      if (this.#is('acquire brings the old note back')) name.annotate(id, claim.note)
    }
    this.#put(text, name, id)
    if (answer.held) return this.#granted(answer, ttl)
    const isForgotten = this.#is('kept waiter is forgotten after a grant') && this.#broken.has(id)
    const listens = this.#is('kept waiter is not woken') || this.#is('lost position is not noticed') || isForgotten
    const kept = listens || this.#is('keeps no position')
    const [holder] = name.state.holders
    return { ...answer, listens, kept, holder: holder && recordOf(text, holder, now) }
  }

  renew(claim: Claim, deadline: number): Grant | undefined {
    this.#arrived(deadline, 'stale renewal carried out')
    const { name: text, ttl } = claim
    const last = this.#last.get(text)
    if (this.#is('renewal revives') && last?.id === claim.id)
      this.#edit(text, state => ({ ...state, holders: [{ ...last, expires: Number.POSITIVE_INFINITY }] }))
    const name = this.#at(text)
    const { id } = this.#askerOf(claim, name.state)
    if (this.#conflicts(id)) return undefined
    const answer = name.renew(id, ttl)
    if (this.#is('renewal brings the old note back')) name.annotate(id, claim.note)
    this.#put(text, name, id)
    return answer && this.#granted(answer, ttl, this.#is('renewal overstates the ttl'))
  }

  annotate({ name: text, id, ttl, note }: Claim, deadline: number): boolean {
    this.#arrived(deadline, 'stale note written')
    const name = this.#at(text)
    const held = name.state.holders.find(holder => holder.id === id)
    if (!held || this.#conflicts(id)) return false
    if (this.#is('unchanged note taken for gone') && note === held.note) return false
    name.annotate(id, note)
    if (this.#is('note renews')) name.renew(id, ttl)
    if (this.#is('note of all holders')) for (const holder of name.state.holders) name.annotate(holder.id, note)
    this.#put(text, name, id)
    return true
  }

  release({ name: text, id }: ClaimKey): 'released' | 'gone' {
    const name = this.#at(text)
    const { holders } = name.state
    const isHeld = holders.some(holder => holder.id === id)
    const [other] = this.#is('release by name') ? holders : []
    const answer = name.release(other?.id ?? id)
    if (isHeld) this.#released.add(id)
    this.#put(text, name, id)
    if (this.#is('no tombstone after a release') && this.#released.has(id))
      this.#edit(text, state => ({ ...state, gone: new Map() }))
    return answer
  }

  break(text: string, { token, slot }: BreakParameters, deadline: number): bigint | undefined {
    this.#arrived(deadline, 'stale break carried out')
    const name = this.#at(text)
    for (const { id } of name.state.holders) this.#broken.add(id)
    const only = {
      token: token === undefined || this.#is('break ignores the token') ? undefined : Number(token),
      slot: this.#is('break ignores the slot') ? undefined : slot,
    }
    const [highest] = name.state.holders.map(holder => holder.token).sort((a, b) => b - a)
    const answer = name.break(only)
    if (this.#is('break of a free name') && !answer) return BigInt(this.#nextToken())
    this.#put(text, name)
    if (this.#is('break clears the queue')) this.#edit(text, state => ({ ...state, waiters: [] }))
    if (!answer) return undefined
    return BigInt(this.#is('break does not raise the token') ? (highest ?? 0) : answer.token)
  }

  inspect(query: Query): LeaseRecord[] {
    const isAsked = (name: string): boolean =>
      'prefix' in query
        ? this.#beginsWith(name, this.#keyOf(query.prefix))
        : this.#is('name taken for a prefix')
          ? name.startsWith(query.name)
          : name === this.#keyOf(query.name)
    const names = [...this.#names.keys()].filter(isAsked)
    return (this.#is('inspect ends after a page') ? names.slice(0, 1_000) : names).flatMap(name => {
      const { now, state } = this.#at(name)
      const last = this.#is('inspect shows an expired holder') ? this.#last.get(name) : undefined
      const holders = state.holders.length > 0 || !last ? state.holders : [last]
      const sorted = this.#is('holders in the order of their grants')
        ? holders
        : holders.toSorted((a, b) => (a.slots[0] ?? 0) - (b.slots[0] ?? 0))
      const shown = this.#is('inspect shows one holder') ? sorted.slice(0, 1) : sorted
      const waiting = state.waiters.map(({ owner, note, limit, units, lapses }, position): LeaseRecord => {
        const record = { name, state: 'waiting', owner, note, limit, remaining: lapses - now, position } as const
        return this.#is('inspect shows no units') ? record : { ...record, units }
      })
      return [...shown.map(holder => recordOf(name, holder, now)), ...waiting]
    })
  }

  watch({ id }: ClaimKey, wake: Wake): () => void {
    const arm = (): unknown => this.#wakes.set(id, wake)
    if (this.#is('watch armed late')) setTimeout(arm, 10_000).unref()
    else arm()
    return () => void (this.#is('wakes who watches no more') || this.#wakes.delete(id))
  }

  onLoss({ id }: ClaimKey, lost: () => void): () => void {
    this.#losses.set(id, lost)
    if (this.#is('loss reported for a held lease')) queueMicrotask(lost)
    return () => void this.#losses.delete(id)
  }

  /** Ends all sessions and keeps only the counter. */
  crash(): void {
    for (const lost of this.#losses.values()) if (!this.#is('loss never reported')) lost()
    this.#losses.clear()
    this.#names.clear()
    if (this.#is('counter lost in a restart')) this.#counter = 0
  }

  /** Resolves when the flawed acquire of this name may be answered. */
  async freed(text: string): Promise<void> {
    if (this.#is('busy answer late')) await new Promise(resolve => setTimeout(resolve, 2_000).unref())
    while (this.#is('acquire waits for the name') && this.#holdersOf(text).length > 0)
      await new Promise(resolve => setTimeout(resolve, 10).unref())
  }

  #is(flaw: Flaw): boolean {
    return this.#flaw === flaw
  }

  /** The name now. */
  #at(text: string): Name {
    const floor = this.#nextToken()
    const state = this.#names.get(this.#keyOf(text)) ?? UNUSED
    // A wall clock may be behind the last token.
    return new this.#Name(performance.now(), floor <= this.#counter ? { ...state, token: 0 } : state, floor)
  }

  #holdersOf(text: string): readonly Holder[] {
    return this.#at(text).state.holders
  }

  #edit(text: string, change: (state: NameState) => NameState): void {
    const key = this.#keyOf(text)
    this.#names.set(key, change(this.#names.get(key) ?? UNUSED))
  }

  /** Stores what was decided for the claim with this id, and wakes waiters. */
  #put(text: string, name: Name, id?: string): void {
    const { state } = name
    const key = this.#keyOf(text)
    this.#names.set(key, state)
    this.#counter = Math.max(this.#counter, state.token)
    const last = state.holders.at(-1)
    if (last) this.#last.set(key, last)
    if (this.#is('wake lost')) return
    const wakes = name.wakes(id)
    for (const [waiter, delay] of wakes) this.#wakes.get(waiter)?.(delay || undefined)
    const [first] = state.waiters
    if (!this.#is('release grants the name to a waiter') || !first || wakes.get(first.id) !== 0) return
    name.acquire({ ...first, queue: true })
    this.#names.set(key, name.state)
  }

  #askerOf(claim: Claim, { holders }: NameState): Asker {
    const { owner, note, ttl, limit = 1, units = 1, roundTrip } = claim
    const own = this.#is('owner taken for the id') ? holders.find(holder => holder.owner === owner) : undefined
    const added = this.#is('round trip has no limit') ? (roundTrip ?? 0) : roundTripOf(roundTrip)
    const grace = TURN + (this.#is('grace period ignores the round trip') ? 0 : added)
    const queue = claim.queue || this.#is('queues who does not queue')
    return { id: own?.id ?? claim.id, owner, note, ttl, limit, units, grace, queue }
  }

  #change(id: string): void {
    this.#changed.add(id)
    setImmediate(() => this.#changed.delete(id))
  }

  /** Did a concurrent request change the lease? */
  #conflicts(id: string): boolean {
    const conflicts = this.#is('conflict taken for gone') && this.#changed.has(id)
    this.#change(id)
    return conflicts
  }

  #arrived(deadline: number, flaw: Flaw): number {
    const now = performance.now()
    if (now <= deadline || this.#is(flaw)) return now
    throw new LeaseError('OUTCOME_UNKNOWN', 'the request arrived late and was refused')
  }

  #keyOf(text: string): string {
    if (this.#is('names differ by letters only')) return text.toLowerCase()
    return this.#is('end of a long name ignored') ? text.slice(0, 191) : text
  }

  #beginsWith(name: string, prefix: string): boolean {
    if (!this.#is('prefix taken for a pattern')) return name.startsWith(prefix)
    return prefix.split('').every((letter, index) => letter === '_' || letter === name[index])
  }

  #granted({ token, slots }: Held, ttl: number, overstates = this.#is('grant overstates the ttl')): Grant {
    return { held: true, token: BigInt(token), ttl: overstates ? 4 * ttl : ttl, slots }
  }

  #nextToken(): number {
    const wall = performance.timeOrigin + performance.now() + this.wallOffset
    if (this.#is('token is the wall clock')) return Math.floor(wall * 1_000)
    if (this.#is('token is the wall clock in seconds')) return Math.floor(wall / 1_000)
    return this.#counter + 1
  }
}

function recordOf(name: string, { owner, note, token, expires, limit, slots }: Holder, now: number): LeaseRecord {
  return { name, state: 'held', owner, note, token: BigInt(token), remaining: expires - now, limit, slots }
}
