import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { LeaseError } from '../../contract/errors.ts'
import type {
  Busy,
  Claim,
  ClaimKey,
  Grant,
  LeaseRecord,
  NoneGranted,
  Selection,
  SomeGranted,
} from '../../contract/store.ts'
import { LONG_TURNS, LONGEST_REQUEST, roundTripOf, turnsWithin } from '../../contract/time.ts'
import { askAgainAfter, mayTake, placeLifetime, roundTrips } from '../shared/queue.ts'
import { select } from '../shared/selection.ts'
import { isConstraint } from './failure.ts'

/** A row of `lease`. It is held until `expires`. With `id` null the name is free since `expires`. */
interface Lease {
  readonly name: string
  readonly id: string | null
  readonly owner: string
  readonly note: string
  readonly token: number
  readonly ttl: number
  readonly expires: number
}

/** A row of `place`: a waiter, in the order of `seq`. */
interface Place {
  readonly seq: number
  readonly id: string
  readonly owner: string
  readonly note: string
  readonly lapses: number
  readonly roundTrip: number
}

/** The state of a name as a claim finds it. */
interface Situation {
  readonly lease: Lease | undefined
  readonly isHeld: boolean
  /** The position of the claim in the queue, if it has one. */
  readonly place: Place | undefined
  readonly ahead: number
  /** Since when the name is free, or when it will be without a renewal; later by the round trips of those ahead. */
  readonly freeSince: number
}

/** Names read at once: a few ms. */
const PAGE = 200

/** Rows checked for each new lease, in rotation: idle names are deleted as fast as new ones arrive. */
const SWEPT = 2

/** Milliseconds for which a freed name wakes its waiters. After that they poll. */
const NEWS = 10_000

const LAST_TOKEN = Number.MAX_SAFE_INTEGER

/** The rules, on one connection. `now` is the wall clock in whole milliseconds, read while the lock is held. */
export class Leases {
  readonly #sql: ReturnType<typeof prepare>
  #sweptTo = ''

  constructor(database: DatabaseSync) {
    this.#sql = prepare(database)
  }

  /** The answer of `acquire` if it needs no write, which would cost an fsync. Otherwise `undefined`. */
  peek(claim: Claim, now: number): Busy | undefined {
    if (this.#isWithdrawn(claim, now)) return refused
    const situation = this.#look(claim, now)
    const { lease, isHeld, place, ahead, freeSince } = situation
    if (isFromFuture(lease, now)) return undefined
    if (isHeld ? lease?.id === claim.id : mayTake(now, freeSince, ahead)) return undefined
    return claim.queue && !isFresh(place, claim, now) ? undefined : busy(situation, claim, now)
  }

  acquire(claim: Claim, now: number): Grant | Busy {
    if (this.#isWithdrawn(claim, now)) return refused
    this.#tidy(claim.name, now)
    const situation = this.#look(claim, now)
    const { lease, isHeld, place, ahead, freeSince } = situation
    if (isHeld && lease?.id === claim.id) {
      const ttl = Math.max(claim.ttl, lease.expires - now) // a stale copy must not undo a longer renewal
      return this.#renewed(lease, ttl, now)
    }
    if (!isHeld && mayTake(now, freeSince, ahead)) {
      const { name, id, owner, note, ttl } = claim
      const token = this.#nextToken(now)
      if (place) this.#sql.deletePlace.run(claim.name, claim.id)
      if (!lease) this.#sweep(now)
      this.#sql.putLease.run(name, id, owner, note, token, ttl, now + ttl)
      return { held: true, token: BigInt(token), ttl }
    }
    if (claim.queue && !isFresh(place, claim, now)) {
      const { name, id, owner, note, ttl, roundTrip } = claim
      this.#sql.putPlace.run(name, id, owner, note, ttl, now + placeLifetime(ttl), roundTripOf(roundTrip))
    }
    return busy(situation, claim, now)
  }

  /** As `peek`, for `acquireSome`. */
  peekSome({ claims, want, gate }: Selection, now: number): NoneGranted | undefined {
    if ([gate, ...claims].some(({ name }) => isFromFuture(this.#lease(name), now))) return undefined
    if (claims.some(claim => this.#holds(claim, now))) return undefined
    if (!this.#isUnused(gate.name, now)) {
      if (!gate.queue) return { held: false, isGated: true, free: 0 }
      const wait = this.peek(gate, now)
      // If it has lost the gate, it leaves the queues of the names.
      const isAway = wait && claims.every(({ name, id }) => !this.#sql.place.get(name, id, 0))
      return isAway ? { held: false, isGated: true, free: 0, wait } : undefined
    }
    const free = claims.filter(claim => this.#isFree(claim, now)).length
    if (gate.queue || free >= want) return undefined
    const holder = claims.map(({ name }) => this.#holder(name, now)).find(found => found !== undefined)
    return { held: false, isGated: false, free, holder }
  }

  acquireSome(selection: Selection, now: number): SomeGranted | NoneGranted {
    const { claims, gate } = selection
    for (const { name } of [gate, ...claims]) this.#tidy(name, now)
    return select(
      {
        acquire: claim => this.acquire(claim, now),
        holds: claim => this.#holds(claim, now),
        leave: claim => void this.#leave(claim, now),
        release: claim => void this.#end(claim, now),
        isFree: claim => this.#isFree(claim, now),
        isUnused: name => this.#isUnused(name, now),
        holder: name => this.#holder(name, now),
      },
      selection,
    )
  }

  renew(claim: Claim, now: number): Grant | undefined {
    const lease = this.#lease(claim.name)
    return lease?.id === claim.id && lease.expires > now ? this.#renewed(lease, claim.ttl, now) : undefined
  }

  annotate({ name, id, note }: Claim, now: number): boolean {
    return this.#sql.annotate.run(note, name, id, now).changes > 0
  }

  release(key: ClaimKey, now: number): 'released' | 'gone' {
    this.#tidy(key.name, now)
    const held = this.#end(key, now)
    if (this.#leave(key, now) || held) return 'released'
    this.#sql.shortenTombstones.run(now + LONGEST_REQUEST, now + LONGEST_REQUEST)
    this.#sql.sweepTombstones.run(now)
    this.#sql.putTombstone.run(key.id, now + LONGEST_REQUEST)
    return 'gone'
  }

  /** `of`: the token of the lease to end, or of any. */
  break(name: string, of: bigint | undefined, now: number): bigint | undefined {
    this.#tidy(name, now)
    const lease = this.#lease(name)
    if (!lease || lease.expires <= now || (of !== undefined && BigInt(lease.token) !== of)) return undefined
    const token = this.#nextToken(now)
    this.#sql.free.run(now, name)
    this.#sql.deleteIdle.run(name, now)
    return BigInt(token)
  }

  /** The records of one name. */
  records(name: string, now: number): LeaseRecord[] {
    const lease = this.#lease(name)
    return lease ? this.#records(lease, now) : []
  }

  /** The records of the names that begin with `prefix`, from the name `from` on, and where the next page begins. */
  page(prefix: string, from: string, now: number): { records: LeaseRecord[]; next: string | undefined } {
    const leases = this.#sql.leases.all(from, PAGE) as unknown as Lease[]
    const matching = leases.filter(lease => lease.name.startsWith(prefix))
    const last = matching[PAGE - 1]
    const records = matching.flatMap(lease => this.#records(lease, now))
    return { records, next: last && `${last.name}\u0001` } // names have no control characters, so none sorts in between
  }

  /** The names that were freed recently, and when. */
  freed(now: number): { name: string; expires: number }[] {
    return this.#sql.freed.all(now - NEWS) as { name: string; expires: number }[]
  }

  /** The ids of the waiters that may take a name that has been free since then. */
  due(name: string, since: number, now: number): string[] {
    const places = this.#sql.line.all(name, now, Math.max(turnsWithin(now - since), 0)) as unknown as Place[]
    return places.filter((_, i) => mayTake(now, since + roundTrips(places, i), i)).map(place => place.id)
  }

  #records(lease: Lease, now: number): LeaseRecord[] {
    const { name } = lease
    const places = this.#sql.line.all(name, now, -1) as unknown as Place[]
    const waiters = places.map(({ owner, note, lapses }, position): LeaseRecord => {
      return { name, state: 'waiting', owner, note, remaining: lapses - now, position }
    })
    return lease.id !== null && lease.expires > now ? [holder(lease, now), ...waiters] : waiters
  }

  #lease(name: string): Lease | undefined {
    return this.#sql.lease.get(name) as Lease | undefined
  }

  #look({ name, id }: ClaimKey, now: number): Situation {
    const lease = this.#lease(name)
    const place = lease && (this.#sql.place.get(name, id, now) as Place | undefined)
    const seq = place?.seq ?? Number.MAX_SAFE_INTEGER
    const count = lease && this.#sql.ahead.get(name, now, seq)
    const isHeld = lease !== undefined && lease.id !== null && lease.expires > now
    const ahead = Number(count?.ahead ?? 0)
    const first = ahead > 0 ? (this.#sql.first.all(name, now, seq) as unknown as Place[]) : []
    const freeSince = (lease?.expires ?? Number.NEGATIVE_INFINITY) + roundTrips(first)
    return { lease, isHeld, place, ahead, freeSince }
  }

  #isUnused(name: string, now: number): boolean {
    const { isHeld, ahead } = this.#look({ name, id: '' }, now)
    return !isHeld && ahead === 0
  }

  /** Would the claim be granted now? */
  #isFree(claim: Claim, now: number): boolean {
    if (this.#isWithdrawn(claim, now)) return false
    const { lease, isHeld, ahead, freeSince } = this.#look(claim, now)
    return isHeld ? lease?.id === claim.id : mayTake(now, freeSince, ahead)
  }

  #holder(name: string, now: number): LeaseRecord | undefined {
    const { lease, isHeld } = this.#look({ name, id: '' }, now)
    return isHeld && lease ? holder(lease, now) : undefined
  }

  #holds({ name, id }: ClaimKey, now: number): boolean {
    const lease = this.#lease(name)
    return lease?.id === id && lease.expires > now
  }

  /** False: the claim did not hold. */
  #end(key: ClaimKey, now: number): boolean {
    const held = this.#holds(key, now)
    if (held) this.#sql.free.run(now, key.name)
    if (held) this.#sql.deleteIdle.run(key.name, now)
    return held
  }

  /** False: the claim did not wait. */
  #leave({ name, id }: ClaimKey, now: number): boolean {
    const waited = this.#sql.deletePlace.run(name, id).changes > 0
    if (waited) this.#sql.deleteIdle.run(name, now)
    return waited
  }

  #isWithdrawn({ id }: ClaimKey, now: number): boolean {
    return this.#sql.tombstone.get(id, now) !== undefined
  }

  #renewed({ name, token }: Lease, ttl: number, now: number): Grant {
    this.#sql.renew.run(ttl, now + ttl, name)
    return { held: true, token: BigInt(token), ttl }
  }

  #nextToken(now: number): number {
    try {
      return Number(this.#sql.nextToken.get(now * 1_000)?.token)
    } catch (error) {
      if (!isConstraint(error)) throw error
      const message = `the tokens are used up (${LAST_TOKEN}): the clock of this machine is or was beyond the year 2255, so use a new file`
      throw new LeaseError('STORE_UNAVAILABLE', message, { cause: error, retryable: false })
    }
  }

  /** Deletes lapsed positions, and shortens what would last too long because the wall clock was set back. */
  #tidy(name: string, now: number): void {
    this.#sql.deleteLapsed.run(name, now)
    this.#sql.shortenPlaces.run(now, name, now)
    this.#sql.shorten.run(now, name, now)
  }

  #sweep(now: number): void {
    const leases = this.#sql.leasesAfter.all(this.#sweptTo, SWEPT) as unknown as Lease[]
    for (const { name } of leases) {
      this.#sql.deleteLapsed.run(name, now)
      this.#sql.deleteIdle.run(name, now)
    }
    this.#sweptTo = leases[SWEPT - 1]?.name ?? ''
  }
}

function prepare(database: DatabaseSync) {
  const sql = (text: string): StatementSync => database.prepare(text)
  const oldest = `select seq from tombstone order by seq limit ${SWEPT}`
  const waiters = 'select *, round_trip as roundTrip from place where name = ?'
  return {
    lease: sql('select * from lease where name = ?'),
    leases: sql('select * from lease where name >= ? order by name limit ?'),
    leasesAfter: sql('select * from lease where name > ? order by name limit ?'),
    putLease: sql(`insert into lease (name, id, owner, note, token, ttl, expires) values (?, ?, ?, ?, ?, ?, ?)
      on conflict (name) do update set id = excluded.id, owner = excluded.owner, note = excluded.note,
        token = excluded.token, ttl = excluded.ttl, expires = excluded.expires`),
    renew: sql('update lease set ttl = ?, expires = ? where name = ?'),
    annotate: sql('update lease set note = ? where name = ? and id = ? and expires > ?'),
    free: sql('update lease set id = null, ttl = 0, expires = ? where name = ?'),
    freed: sql('select name, expires from lease where id is null and expires > ?'),
    shorten: sql('update lease set expires = ? + ttl where name = ? and expires > ? + ttl'),
    shortenPlaces: sql(`update place set lapses = ? + max(ttl, ${placeLifetime(0)})
      where name = ? and lapses > ? + max(ttl, ${placeLifetime(0)})`),
    deleteIdle: sql(`delete from lease where name = ? and expires <= ?
      and not exists (select 1 from place where place.name = lease.name)`),
    nextToken: sql('update counter set token = max(token + 1, ?) returning token'),
    place: sql(`${waiters} and id = ? and lapses > ?`),
    ahead: sql('select count(*) as ahead from place where name = ? and lapses > ? and seq < ?'),
    first: sql(`${waiters} and lapses > ? and seq < ? order by seq limit ${LONG_TURNS}`),
    line: sql(`${waiters} and lapses > ? order by seq limit ?`),
    putPlace: sql(`insert into place (name, id, owner, note, ttl, lapses, round_trip) values (?, ?, ?, ?, ?, ?, ?)
      on conflict (name, id) do update set ttl = excluded.ttl, lapses = excluded.lapses, round_trip = excluded.round_trip`),
    deletePlace: sql('delete from place where name = ? and id = ?'),
    deleteLapsed: sql('delete from place where name = ? and lapses <= ?'),
    tombstone: sql('select 1 from tombstone where id = ? and until > ?'),
    putTombstone: sql('insert or replace into tombstone (id, until) values (?, ?)'),
    shortenTombstones: sql(`update tombstone set until = ? where seq in (${oldest}) and until > ?`),
    sweepTombstones: sql(`delete from tombstone where seq in (${oldest}) and until <= ?`),
  }
}

const refused: Busy = { held: false, retryAfter: LONGEST_REQUEST }

function busy({ lease, isHeld, ahead, freeSince }: Situation, { ttl, queue }: Claim, now: number): Busy {
  const retryAfter = askAgainAfter(now, freeSince, ahead, ttl, queue)
  return { held: false, retryAfter, ahead, holder: isHeld && lease ? holder(lease, now) : undefined }
}

function holder({ name, owner, token, note, expires }: Lease, now: number): LeaseRecord {
  return { name, state: 'held', owner, token: BigInt(token), note, remaining: expires - now }
}

/** A position is renewed after a quarter of its lifetime. A waiter asks after a third, or when it is woken. */
function isFresh(place: Place | undefined, { ttl }: Claim, now: number): boolean {
  const left = place && place.lapses - now
  const lifetime = placeLifetime(ttl)
  return left !== undefined && left > 0.75 * lifetime && left <= lifetime // more: the wall clock was set back
}

/** Was it written before the wall clock was set back? */
function isFromFuture(lease: Lease | undefined, now: number): boolean {
  return lease !== undefined && lease.expires > now + lease.ttl
}
