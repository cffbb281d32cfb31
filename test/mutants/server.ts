import { LeaseError } from '../../src/contract/errors.ts'
import type {
  Busy,
  Claim,
  ClaimKey,
  Grant,
  LeaseRecord,
  NoneGranted,
  Query,
  Selection,
  SomeGranted,
  Wake,
} from '../../src/contract/store.ts'
import { LONGEST_REQUEST, TURN, turnAfter } from '../../src/contract/time.ts'
import { askAgainAfter, mayTake, placeLifetime, roundTrips } from '../../src/stores/shared/queue.ts'
import { type Names, select } from '../../src/stores/shared/selection.ts'
import type { Flaw } from './flaws.ts'
import { type Holder, type Name, recordOf } from './name.ts'

/** The smallest server that keeps the contract, or keeps it except for one planted flaw. */
export class Server {
  /** The shift of its wall clock, in milliseconds. */
  wallOffset = 0
  readonly #flaw: Flaw | undefined
  readonly #names = new Map<string, Name>()
  readonly #withdrawn = new Map<string, number>()
  readonly #withdrawnOf = new Map<string, string>()
  readonly #released = new Set<string>()
  readonly #broken = new Set<string>()
  readonly #wakes = new Map<string, Wake>()
  readonly #losses = new Map<string, () => void>()
  /** Claims that were changed in this turn of the event loop, for the flaws that race. */
  readonly #changed = new Set<string>()
  #counter = 0n

  constructor(flaw?: Flaw) {
    this.#flaw = flaw
  }

  acquire(claim: Claim, deadline: number): Grant | Busy {
    const now = this.#arrived(deadline, 'stale acquire takes the name')
    const { id, ttl } = claim
    const name = this.#at(claim.name)
    if (now > deadline) name.holder = undefined
    const { holder } = name
    const isWithdrawn = !this.#is('tombstone ignored') && (this.#withdrawn.get(id) ?? 0) > now
    if (isWithdrawn) return { held: false, retryAfter: LONGEST_REQUEST }
    const isOwn =
      this.#isOf(holder, claim) &&
      !this.#is('holder gets another token') &&
      !(this.#is('copy granted again while under way') && this.#changed.has(id))
    if (isOwn && this.#is('copy of acquire shortens')) holder.expires = now + ttl
    if (isOwn && this.#is('acquire brings the old note back')) holder.claim = claim
    if (isOwn) return this.#extend(holder, Math.max(holder.expires, now + ttl), ttl)
    const place = this.#is('waiter gets another position') ? -1 : name.queue.findIndex(({ claim }) => claim.id === id)
    const ahead = place < 0 ? name.queue.length : place
    const hasTurn = this.#is('no grace period')
      ? ahead === 0
      : this.#is('dead crowd blocks')
        ? ahead < 2 && now >= name.freeSince + ahead * TURN
        : mayTake(now, name.freeSince + this.#roundTrips(name, ahead), this.#is('queue jumped') ? 0 : ahead)
    const isOurs = holder?.claim.id === id || this.#is('two holders')
    if ((!holder || isOurs) && hasTurn) {
      name.queue = name.queue.filter(({ claim }) => claim.id !== id)
      name.holder = { claim, token: this.#token(), expires: now + ttl }
      this.#change(id)
      return this.#granted(name.holder, ttl)
    }
    if (claim.queue || this.#is('queues who does not queue'))
      name.queue[ahead] = { claim, lapses: now + placeLifetime(ttl) }
    const freeAt = (holder?.expires ?? name.freeSince) + this.#roundTrips(name, ahead)
    const retryAfter = askAgainAfter(now, freeAt, ahead, ttl, claim.queue)
    const isForgotten = this.#is('kept waiter is forgotten after a grant') && this.#broken.has(id)
    const listens = this.#is('kept waiter is not woken') || isForgotten
    const kept = listens || this.#is('keeps no position')
    return { held: false, retryAfter, ahead, listens, kept, holder: holder && recordOf(holder) }
  }

  acquireSome(selection: Selection, deadline: number): SomeGranted | NoneGranted {
    const now = performance.now()
    const { claims, gate } = selection
    const guard = this.#at(gate.name)
    const isAway = guard.holder !== undefined && guard.holder.claim.id !== gate.id
    const isFree = ({ name: text, id }: Claim): boolean => {
      const { holder, freeSince, queue } = this.#at(text)
      if ((this.#withdrawn.get(id) ?? 0) > now && !this.#is('selection of withdrawn claims')) return false
      const place = queue.findIndex(({ claim }) => claim.id === id)
      const ahead = this.#is('selection overtakes') ? 0 : place < 0 ? queue.length : place
      return holder ? holder.claim.id === id : mayTake(now, freeSince, ahead)
    }
    const names: Names = {
      acquire: claim => {
        const isOther = claim.queue && claim.name !== claims[0]?.name && claim.name !== gate.name
        if (isOther && this.#is('selection waits for one name'))
          return this.acquire({ ...claim, queue: false }, deadline)
        if (this.#is('selection of withdrawn claims')) this.#withdrawn.delete(claim.id)
        if (this.#is('selection overtakes')) this.#at(claim.name).queue = []
        return this.acquire(claim, deadline)
      },
      leave: claim => {
        if (isAway && this.#is('selection waits on without the gate')) return
        if (this.#is('selection ends what it holds')) this.release(claim)
        else if (isAway || !this.#is('selection waits on')) this.#leave(claim)
      },
      holds: ({ name, id }) => !this.#is('selection ends what it holds') && this.#at(name).holder?.claim.id === id,
      release: claim => void (this.#is('selection keeps the gate') || this.release(claim)),
      isFree,
      isUnused: name => {
        const { holder, queue } = this.#at(name)
        return this.#is('selection ignores the gate') || (!holder && queue.length === 0)
      },
      holder: name => {
        const { holder } = this.#at(name)
        return holder && recordOf(holder)
      },
    }
    const most = this.#is('selection of too few') ? claims.filter(isFree).length : selection.want
    const want = Math.min(most, selection.want)
    return select(names, { ...selection, want })
  }

  renew(claim: Claim, deadline: number): Grant | undefined {
    const now = this.#arrived(deadline, 'stale renewal carried out')
    const name = this.#at(claim.name)
    if (this.#is('renewal revives') && !name.holder && name.last?.claim.id === claim.id) name.holder = name.last
    const { holder } = name
    if (!this.#isOf(holder, claim) || this.#conflicts(claim.id)) return undefined
    if (this.#is('renewal brings the old note back')) holder.claim = claim
    const renewed = this.#is('renewal gets another token') ? { ...holder, token: this.#token() } : holder
    name.holder = renewed
    return this.#extend(renewed, now + claim.ttl, claim.ttl, this.#is('renewal overstates the ttl'))
  }

  annotate({ name, id, ttl, note }: Claim, deadline: number): boolean {
    const now = this.#arrived(deadline, 'stale note written')
    const { holder } = this.#at(name)
    if (holder?.claim.id !== id || this.#conflicts(id)) return false
    if (this.#is('unchanged note taken for gone') && note === holder.claim.note) return false
    holder.claim = { ...holder.claim, note }
    if (this.#is('note renews')) holder.expires = now + ttl
    return true
  }

  release(key: ClaimKey): 'released' | 'gone' {
    const { name: text, id } = key
    const name = this.#at(text)
    if (name.holder !== undefined && (name.holder.claim.id === id || this.#is('release by name'))) {
      this.#released.add(id)
      name.queue = name.queue.filter(({ claim }) => claim.id !== id)
      this.#free(name, text)
      return 'released'
    }
    if (this.#leave(key)) return 'released'
    if (this.#is('one tombstone a name')) this.#forgetWithdrawn(text)
    this.#withdrawnOf.set(id, text)
    if (this.#is('no tombstone after a release') && this.#released.has(id)) return 'gone'
    this.#withdrawn.set(id, performance.now() + (this.#is('tombstone of one second') ? 1_000 : LONGEST_REQUEST))
    return 'gone'
  }

  break(text: string, token: bigint | undefined, deadline: number): bigint | undefined {
    this.#arrived(deadline, 'stale break carried out')
    const name = this.#at(text)
    const { holder } = name
    if (!holder) return this.#is('break of a free name') ? this.#token() : undefined
    if (token !== undefined && token !== holder.token && !this.#is('break ignores the token')) return undefined
    if (this.#is('break clears the queue')) name.queue = []
    this.#broken.add(holder.claim.id)
    const higher = this.#is('break does not raise the token') ? holder.token : this.#token()
    this.#free(name, text)
    return higher
  }

  inspect(query: Query): LeaseRecord[] {
    const isAsked = (name: string): boolean =>
      'prefix' in query
        ? this.#beginsWith(name, this.#keyOf(query.prefix))
        : this.#is('name taken for a prefix')
          ? name.startsWith(query.name)
          : name === this.#keyOf(query.name)
    const now = performance.now()
    const names = [...this.#names.keys()].filter(isAsked)
    return (this.#is('inspect ends after a page') ? names.slice(0, 1_000) : names).flatMap(name => {
      const { holder, last, queue } = this.#at(name)
      const shown = holder ?? (this.#is('inspect shows an expired holder') ? last : undefined)
      const waiting = queue.map(({ claim: { owner, note }, lapses }, position): LeaseRecord => {
        return { name, state: 'waiting', owner, note, remaining: lapses - now, position }
      })
      return [...(shown ? [recordOf(shown)] : []), ...waiting]
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
    if (this.#is('counter lost in a restart')) this.#counter = 0n
    this.#withdrawn.clear()
  }

  /** Resolves when the flawed acquire of this name may be answered. */
  async freed(text: string): Promise<void> {
    if (this.#is('busy answer late')) await new Promise(resolve => setTimeout(resolve, 2_000).unref())
    while (this.#is('acquire waits for the name') && this.#at(text).holder)
      await new Promise(resolve => setTimeout(resolve, 10).unref())
  }

  /** False: the claim did not wait. */
  #leave({ name: text, id }: ClaimKey): boolean {
    const name = this.#at(text)
    const { length } = name.queue
    name.queue = name.queue.filter(({ claim }) => claim.id !== id)
    const waited = name.queue.length < length
    if (waited && !name.holder) this.#wakeHead(name)
    return waited
  }

  #is(flaw: Flaw): boolean {
    return this.#flaw === flaw
  }

  #isOf(holder: Holder | undefined, { id, owner }: Claim): holder is Holder {
    return this.#is('owner taken for the id') ? holder?.claim.owner === owner : holder?.claim.id === id
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

  /** The current state of the name, without expired leases. */
  #at(text: string): Name {
    const now = performance.now()
    const key = this.#keyOf(text)
    const found = this.#names.get(key)
    const name = found ?? { holder: undefined, freeSince: Number.NEGATIVE_INFINITY, queue: [], last: undefined }
    if (!found) this.#names.set(key, name)
    const { holder } = name
    if (holder && holder.expires <= now) {
      name.holder = undefined
      name.last = holder
      name.freeSince = holder.expires
    }
    name.queue = name.queue.filter(({ lapses }) => lapses > now)
    return name
  }

  #extend(holder: Holder, expires: number, ttl: number, overstates = false): Grant {
    holder.expires = expires
    return this.#granted(holder, ttl, overstates)
  }

  #granted({ token }: Holder, ttl: number, overstates = this.#is('grant overstates the ttl')): Grant {
    return { held: true, token, ttl: overstates ? 4 * ttl : ttl }
  }

  #forgetWithdrawn(text: string): void {
    for (const [id, name] of this.#withdrawnOf) if (name === text) this.#withdrawn.delete(id)
  }

  #free(name: Name, text: string): void {
    if (this.#is('tombstone ends with a lease')) this.#forgetWithdrawn(text)
    name.holder = undefined
    name.freeSince = performance.now()
    const [first] = name.queue
    this.#wakeHead(name)
    if (!first || !this.#is('release grants the name to a waiter')) return
    const { claim } = first
    name.holder = { claim, token: this.#token(), expires: name.freeSince + claim.ttl }
    name.queue.shift()
  }

  #roundTrips({ queue }: Name, ahead: number): number {
    const before = queue.slice(0, ahead).map(({ claim }) => claim)
    if (this.#is('grace period ignores the round trip')) return 0
    if (this.#is('round trip has no limit')) return before.reduce((sum, { roundTrip = 0 }) => sum + roundTrip, 0)
    return roundTrips(before)
  }

  #wakeHead({ queue }: Name): void {
    if (this.#is('wake lost')) return
    const watched = queue.filter(({ claim }) => this.#wakes.has(claim.id))
    for (const [index, { claim }] of watched.slice(0, 2).entries())
      this.#wakes.get(claim.id)?.(index > 0 ? turnAfter(queue.findIndex(place => place.claim === claim)) : undefined)
  }

  #token(): bigint {
    const wall = performance.timeOrigin + performance.now() + this.wallOffset
    if (this.#is('token is the wall clock')) return BigInt(Math.floor(wall * 1_000))
    if (this.#is('token is the wall clock in seconds')) return BigInt(Math.floor(wall / 1_000))
    this.#counter += 1n
    return this.#counter
  }
}
