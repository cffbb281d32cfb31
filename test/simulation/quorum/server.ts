import { LeaseError } from '../../../src/contract/errors.ts'
import type { Claim, ClaimKey } from '../../../src/contract/store.ts'
import { LONGEST_REQUEST, TURN } from '../../../src/contract/time.ts'
import type { Broken, Claims, Renewal, Sight, Vote } from '../../../src/stores/quorum/member.ts'
import { placeLifetime, turnAfter } from '../../../src/stores/quorum/queue.ts'
import { BEGINNING } from '../machine.ts'
import type { World } from '../world.ts'

/** Microseconds: a server lets no clock of a client take its counters further ahead of its own. */
const MOST_AHEAD = 10_000_000

/** Is added to the number of a renewal. No attempt that was given up takes back what was renewed. */
const RENEWED = 2 ** 52

/** Changes what a server does, to see that the checks notice. */
export interface Flaw {
  /** Votes as soon as it runs, whatever it forgot. */
  readonly isTrusting?: boolean
  /** Takes a COMMIT for any vote of the claim. */
  readonly commitsAll?: boolean
  /** Leaves the token as it is at a release. */
  readonly keepsToken?: boolean
}

/** What a client learns when it connects: a server cannot restart under a connection. */
export interface Greeting {
  readonly run: number
  /** By the server's wall clock, in which uptime has whole seconds. */
  readonly startedAt: number
  readonly time: number
}

/** What hears of wakes for waiters. */
export interface Ears {
  /** Does it listen to this run of the server? */
  listensTo(run: number): boolean
  hear(id: string, delay: number): void
}

/** Its `token` while it is held is the one of the name. */
interface Lease {
  readonly claim: Claim
  readonly attempt: number
  /** Of the note of the claim. */
  readonly revision: number
  readonly ttl: number
  ends: number
}

interface Place {
  readonly claim: Claim
  readonly ears: Ears
  readonly asked: number
  readonly lapses: number
}

interface Name {
  token: number
  lease: Lease | undefined
  /** By id, in the order in which they came. */
  readonly line: Map<string, Place>
}

/**
 * One of the servers of a quorum: what src/stores/redlock/script.ts makes of Redis, in memory. All of it goes by the wall
 * clock of the server, which is wrong by as much as it is told to be.
 */
export class VotingServer {
  readonly name: string
  refusedLate = 0
  refusedWithdrawn = 0
  restored = 0
  /** Requests that it answered although its answers did not count. */
  quarantined = 0
  isUp = true
  readonly #world: World
  readonly #maxTtl: number
  readonly #flaw: Flaw
  readonly #fail: (what: string) => void
  readonly #rate: number
  #skew = 0
  #run = 1
  #startedAt: number
  /** Of which run the server remembers everything, and since when. */
  #note: { readonly run: number; readonly since: number } | undefined
  #running: Promise<void> = Promise.resolve()
  readonly #names = new Map<string, Name>()
  readonly #withdrawn = new Map<string, { readonly attempt: number; readonly until: number }>()
  readonly #released = new Set<string>()

  /** It has run for long. `rate` is how fast its clock is; `fail` is told what it must never do. */
  constructor(
    name: string,
    world: World,
    { maxTtl, rate, flaw, fail }: { maxTtl: number; rate: number; flaw: Flaw; fail(what: string): void },
  ) {
    this.name = name
    this.#world = world
    this.#maxTtl = maxTtl
    this.#rate = rate
    this.#flaw = flaw
    this.#fail = fail
    this.#startedAt = this.time() - 1e9
    this.#note = { run: this.#run, since: this.#startedAt }
  }

  /** Its wall clock. */
  time(): number {
    return BEGINNING + this.#skew + this.#world.now * this.#rate
  }

  /** Sets its wall clock ahead of true time by `ms`. */
  setClock(ms: number): void {
    this.#skew = ms
  }

  /** Stands still for `ms`: what arrives meanwhile is carried out after. */
  stop(ms: number): void {
    this.#running = this.#world.sleep(ms)
  }

  crash(): void {
    this.isUp = false
  }

  /** Runs again, perhaps without some of what it was told. */
  restart(forgets: () => boolean): void {
    this.isUp = true
    this.#run += 1
    this.#startedAt = this.time()
    this.forget(forgets)
  }

  /** Loses each of its keys that `forgets` says. */
  forget(forgets: () => boolean): void {
    if (forgets()) this.#note = undefined
    for (const name of this.#names.keys()) if (forgets()) this.#names.delete(name)
    for (const id of this.#withdrawn.keys()) if (forgets()) this.#withdrawn.delete(id)
    this.#released.clear()
  }

  greet(): Greeting {
    if (!this.isUp) throw new LeaseError('STORE_UNAVAILABLE', 'the connection was refused')
    const time = Math.floor(this.time())
    const uptime = Math.floor(time / 1_000) - Math.floor(this.#startedAt / 1_000) // as Redis counts it, never below 0
    return { run: this.#run, startedAt: time - uptime * 1_000, time }
  }

  /** Rejects if the connection on which it came is gone; answers nothing if it came after `deadline`. */
  async carryOut<Value>(
    { run, startedAt }: Greeting,
    deadline: number,
    verb: (server: VotingServer, votesIn: number) => Value,
  ): Promise<{ readonly value: Value | undefined; readonly votesIn: number; readonly time: number }> {
    await this.#running
    if (!this.isUp || run !== this.#run) throw new LeaseError('OUTCOME_UNKNOWN', 'the connection was lost')
    const time = this.time()
    const votesIn = this.#votesIn(startedAt)
    if (time <= deadline) return { value: verb(this, votesIn), votesIn, time }
    this.refusedLate += 1
    return { value: undefined, votesIn, time }
  }

  vote(claim: Claim, attempt: number, ears: Ears, votesIn: number): Vote | undefined {
    if (votesIn > 0) return undefined
    const now = this.time()
    const { id, ttl, queue } = claim
    const name = this.#at(claim.name)
    const { lease, line } = name
    if (attempt <= this.#refused(id)) {
      this.refusedWithdrawn += 1
      return { kind: 'withdrawn' }
    }
    if (lease?.claim.id === id) {
      const { ttl: longest, ends } = lease.ends - now > ttl ? lease : { ttl, ends: now + ttl }
      name.lease = { ...lease, attempt: Math.max(attempt, lease.attempt), ttl: longest, ends }
      return { kind: 'granted', token: name.token }
    }
    if (!lease) {
      line.delete(id)
      name.token = Math.max(name.token + 1, this.#floor(attempt))
      name.lease = { claim, attempt, revision: 0, ttl, ends: now + ttl }
      return { kind: 'granted', token: name.token }
    }
    const place = [...line.keys()].indexOf(id)
    const ahead = place < 0 ? line.size : place
    if (queue) line.set(id, { claim, ears, asked: now, lapses: now + placeLifetime(ttl) })
    return { kind: 'busy', holder: holding(name.token, lease, now), ahead, listens: ears.listensTo(this.#run) }
  }

  commit({ name, id }: ClaimKey, attempt: number, seen: number, token: number): boolean {
    const found = this.#at(name)
    if (found.lease?.claim.id !== id) return false
    const isOfAttempt = found.lease.attempt === attempt && found.token === seen
    if (!isOfAttempt && !this.#flaw.commitsAll) return false
    found.token = token
    return true
  }

  renew(claim: Claim, restore: boolean, number: number): Renewal {
    const { id, ttl, token: known = 0n } = claim
    const name = this.#at(claim.name)
    const { lease } = name
    if (isLost(name, claim)) return { state: 'lost', token: 0 }
    if (!lease && !restore) return { state: 'free', token: 0 }
    if (!lease) {
      if (this.#refused(id) === Number.POSITIVE_INFINITY) return { state: 'lost', token: 0 }
      this.restored += 1
      if (this.#released.has(id)) this.#fail(`${claim.name}: a renewal brought back what was released at ${this.name}`)
    }
    name.token = Math.max(name.token, Number(known))
    const ends = this.time() + ttl
    const attempt = Math.max(RENEWED + number, lease?.attempt ?? 0)
    const isShorter = lease && lease.ends > ends && attempt > RENEWED + number // an earlier one came later
    if (!isShorter) name.lease = { ...(lease ?? { claim, revision: 1 }), attempt, ttl, ends }
    return { state: 'held', token: name.token }
  }

  annotate(claim: Claim, revision: number): Renewal {
    const name = this.#at(claim.name)
    const { lease, token } = name
    if (!lease || isLost(name, claim)) return { state: isLost(name, claim) ? 'lost' : 'free', token: 0 }
    if (revision > lease.revision) Object.assign(lease, { claim: { ...lease.claim, note: claim.note }, revision })
    return { state: 'held', token }
  }

  release({ name, id, token = 0n }: ClaimKey): boolean {
    const found = this.#at(name)
    const { lease, line } = found
    const isHolder = lease?.claim.id === id
    const isWaiter = line.delete(id)
    const known = Number(token)
    if (known > 0) this.#released.add(id)
    if ((isHolder || !lease) && known > 0 && !this.#flaw.keepsToken) found.token = Math.max(known + 1, found.token)
    if (isHolder) found.lease = undefined
    if (isHolder || (isWaiter && !lease)) this.#wake(found)
    if (!isHolder && (known > 0 || !isWaiter)) this.#refuse(id, Number.POSITIVE_INFINITY)
    return isHolder || isWaiter
  }

  concede({ name, id }: ClaimKey, attempt: number, wakes: boolean): boolean {
    const found = this.#at(name)
    const { lease } = found
    if (lease?.claim.id !== id) {
      if (attempt > this.#refused(id)) this.#refuse(id, attempt)
      return false
    }
    if (lease.attempt > attempt) return false
    found.lease = undefined
    if (wakes) this.#wake(found)
    return true
  }

  break(name: string, claims: Claims, token: number): Broken {
    const found = this.#at(name)
    const { lease, token: last } = found
    const hasEnded = lease !== undefined && last <= (claims.get(lease.claim.id) ?? 0)
    const isRaised = (hasEnded || !lease) && last < token
    if (isRaised) found.token = token
    if (hasEnded) {
      found.lease = undefined
      this.#wake(found)
    }
    return { hasEnded, isRaised, token: found.token }
  }

  look(name: string): Sight {
    const { token, lease, line } = this.#at(name)
    const now = this.time()
    return {
      holder: lease && holding(token, lease, now),
      queue: Array.from(line.values(), ({ claim, lapses }) => seen(claim, lapses - now)),
    }
  }

  /** Names that are held or waited for. */
  left(): string[] {
    return [...this.#names.keys()].filter(name => {
      const { lease, line } = this.#at(name)
      return lease || line.size > 0
    })
  }

  #votesIn(startedAt: number): number {
    if (this.#flaw.isTrusting) return 0
    const now = Math.floor(this.time())
    if (this.#note?.run !== this.#run) {
      const afterStart = startedAt + 1_000
      const since = this.#note && afterStart + this.#maxTtl > now ? afterStart : now
      this.#note = { run: this.#run, since }
    }
    const votesIn = Math.min(Math.max(this.#note.since + this.#maxTtl - now, 0), this.#maxTtl)
    if (votesIn > 0) this.quarantined += 1
    return votesIn
  }

  #floor(attempt: number): number {
    return Math.min(attempt, Math.floor(this.time() * 1_000) + MOST_AHEAD)
  }

  #at(name: string): Name {
    let found = this.#names.get(name)
    if (!found) {
      found = { token: 0, lease: undefined, line: new Map() }
      this.#names.set(name, found)
    }
    const now = this.time()
    const { lease, line } = found
    // Only a clock that was set back makes more remain than the ttl.
    if (lease) lease.ends = Math.min(lease.ends, now + lease.ttl)
    if (lease && lease.ends <= now) found.lease = undefined
    for (const [id, { lapses }] of line) if (lapses <= now) line.delete(id)
    return found
  }

  /** Up to which attempt a claim is refused. */
  #refused(id: string): number {
    const { attempt, until } = this.#withdrawn.get(id) ?? { attempt: 0, until: 0 }
    return this.time() < until ? attempt : 0
  }

  #refuse(id: string, attempt: number): void {
    this.#withdrawn.set(id, { attempt, until: this.time() + LONGEST_REQUEST })
  }

  /** The first who listens, and the next of another process, should that one stand still. */
  #wake({ line }: Name): void {
    let first: Ears | undefined
    for (const [place, [id, { ears, asked }]] of [...line].entries()) {
      if (ears === first || !ears.listensTo(this.#run)) continue
      ears.hear(id, first ? turnAfter(place) : 0)
      if (first || this.time() - asked < TURN) return
      first = ears
    }
  }
}

/** Has another claim the vote, or did it get a higher token than the lease? */
function isLost({ lease, token: last }: Name, { id, token = 0n }: ClaimKey): boolean {
  if (lease && lease.claim.id !== id) return true
  return last > token && !(lease && token === 0n)
}

function seen({ id, owner, note }: Claim, remaining: number): Sight['queue'][number] {
  return { id, owner, note, remaining }
}

function holding(token: number, { claim, revision, ends }: Lease, now: number): NonNullable<Sight['holder']> {
  return { ...seen(claim, ends - now), token, revision }
}
