import { LeaseError } from '../../contract/errors.ts'
import { randomId } from '../../contract/random-id.ts'
import type {
  BreakParameters,
  Busy,
  Claim,
  ClaimKey,
  Grant,
  Guarantees,
  LeaseRecord,
  Query,
  Store,
} from '../../contract/store.ts'
import { LONGEST_REQUEST, requestLimit, roundTripOf, systemClock } from '../../contract/time.ts'
import { reportStale } from '../wire/batched-requests.ts'
import { openConnection } from '../wire/connection.ts'
import { Connections } from '../wire/connections.ts'
import { KeptPositions } from '../wire/kept-positions.ts'
import type { Kept } from '../wire/local-queue.ts'
import type { Notifications } from '../wire/notifications.ts'
import { Pruning } from '../wire/pruning.ts'
import { retryAfter } from '../wire/retry.ts'
import { annotate } from './annotate.ts'
import type { PostgresConnection, PostgresDriver } from './connection.ts'
import { exhausted, failure, isReply } from './failure.ts'
import { guaranteesOf } from './guarantees.ts'
import { inspection, slotsOf } from './inspection.ts'
import { prepare } from './migrate.ts'
import type { Names } from './names.ts'
import { notificationsOf } from './notifications.ts'
import { type Answer, type Parameters, Requests } from './requests.ts'

/** Milliseconds after which a waiter asks again if it has no position yet, because its row was locked. */
const LOCKED = 10

/** A placeholder for the round trip that the connection has measured. */
const UNKNOWN = -1

/** The largest number of waiters that one request keeps. That takes PostgreSQL 10 to 50 ms, and renewals wait for it. */
const MOST_KEPT = 500

export interface PostgresStoreOptions {
  readonly names: Names
  readonly create: boolean
  /** Opens the connection for notifications. Without it, waiters poll. */
  readonly direct: PostgresDriver | undefined
}

export class PostgresStore implements Store {
  readonly kind = 'postgres'
  readonly guarantees: Guarantees
  /** This exists only if a connection can subscribe. */
  readonly watch?: NonNullable<Store['watch']>
  readonly #clock = systemClock()
  readonly #names: Names
  readonly #connections: Connections<PostgresConnection>
  readonly #acquires: Requests
  readonly #renewals: Requests
  readonly #notes: Requests
  readonly #releases: Requests
  readonly #notifications: Notifications | undefined
  readonly #places = new KeptPositions(this.#clock, {
    most: MOST_KEPT,
    keep: (name, lifetime, ids) => this.#keep(name, lifetime, ids),
  })
  readonly #pruning: Pruning

  constructor(driver: PostgresDriver, { names, create, direct }: PostgresStoreOptions) {
    this.guarantees = guaranteesOf(direct !== undefined)
    this.#names = names
    const connections = new Connections<PostgresConnection>({
      open: closing => openConnection(driver, connection => prepare(connection, names, create), closing),
      failure: (error, connection) => failure(error, connection !== undefined),
      judge: error => (isReply(error) ? 'keep' : 'retire'),
      replaced: () => this.#notifications?.move(),
    })
    const channel = `holdfast_${randomId()}`
    this.#connections = connections
    const notify = direct ? `'${channel}'` : 'null'
    const [acquire, acquireOne, renew, release, releaseOne] = [
      `select ${names.call('acquire')}($1, ${notify}), $0`,
      `select ${names.call('acquire_one')}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, ${notify}), $0`,
      `select ${names.call('renew')}($1), $0`,
      `select ${names.call('release')}($1), $0`,
      `select ${names.call('release_one')}($1, $2), $0`,
    ]
    this.#acquires = new Requests(connections, (connection, requests) =>
      askOneOr(connection, acquireOne, acquire, withRoundTrips(requests, connection.clock.roundTrip)),
    )
    this.#renewals = new Requests(connections, (connection, requests) => connection.ask(renew, [toJson(requests)]))
    this.#notes = new Requests(connections, (connection, requests) =>
      connection.askInTime(annotate(names), [toJson(requests)]),
    )
    this.#releases = new Requests(connections, (connection, requests) =>
      askOneOr(connection, releaseOne, release, requests),
    )
    const pruneSome = `select ${names.call('prune')}($1, $2), $0`
    this.#pruning = new Pruning((after, most) =>
      connections.run(connection => connection.ask(pruneSome, [after, String(most)])),
    )
    if (!direct) return
    const notifications = notificationsOf(this.#clock, direct, channel)
    this.#notifications = notifications
    this.watch = async (claim, wake, signal) => {
      await notifications.watch(claim.id, wake, signal, () => this.#places.remove(claim, wake))
      if (claim.queue && !signal.aborted) this.#places.add(claim, wake)
    }
  }

  async acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    const { name, id, owner, note, ttl, queue, limit = 1, units = 1, roundTrip = UNKNOWN } = claim
    const subscription = this.#notifications?.subscription
    const answer = await this.#acquires.put(
      { name, id, owner, note, ttl, queue, slot_limit: limit, units, round_trip: roundTrip },
      { ttl, signal },
    )
    const [kind] = answer
    if (kind === 'gone') {
      reportStale('postgres', 'withdrawn')
      return { held: false, retryAfter: LONGEST_REQUEST, ahead: 0 }
    }
    // If the request was aborted, a later request may already have been answered.
    if (kind === 'busy')
      return this.#busy(claim, answer, this.#notifications?.covers(subscription), queue && !signal.aborted)
    if (kind !== 'held') throw locked(name)
    this.#places.granted(claim)
    this.#pruning.granted(name)
    return granted(answer, ttl)
  }

  async renew({ name, id, ttl }: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    const answer = await this.#renewals.put({ name, id, ttl }, { ttl, signal })
    if (answer[0] === 'lost') return undefined
    if (answer[0] !== 'held') throw locked(name)
    return granted(answer, ttl)
  }

  async annotate({ name, id, note, ttl }: Claim, signal: AbortSignal): Promise<boolean> {
    const [kind] = await this.#notes.put({ name, id, note }, { ttl, signal })
    if (kind === 'skipped') throw locked(name)
    return kind === 'noted'
  }

  async release({ name, id }: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    const [kind] = await this.#releases.put({ name, id }, { signal })
    if (kind === 'skipped') throw locked(name)
    return kind === 'released' ? 'released' : 'gone'
  }

  async *inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    signal.throwIfAborted()
    yield* inspection(this.#connections, this.#names, query, signal)
  }

  async break(name: string, { token: of, slot }: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    const until = performance.now() + LONGEST_REQUEST
    const breakLease = `select ${this.#names.call('break')}($1, $2::double precision, $3, $4), $0`
    for (;;) {
      const work = async (connection: PostgresConnection, sent: number): Promise<Answer> => {
        const deadline = String(connection.clock.at(until))
        const text = await connection.ask(breakLease, [name, deadline, String(of ?? ''), String(slot ?? '')])
        const [time, [answer]] = JSON.parse(String(text)) as [number, [Answer]]
        connection.clock.learn(time, sent)
        return answer
      }
      signal.throwIfAborted()
      const [kind, token] = await this.#connections.run(work, { onOpened: () => signal.throwIfAborted() })
      if (kind === 'held') return BigInt(String(token))
      if (kind === 'exhausted') throw exhausted('; its lease was ended')
      if (kind === 'lost') return undefined
      if (kind !== 'late' || performance.now() >= until) throw locked(name)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connections.close()
    this.#notifications?.close()
    this.#places.close()
  }

  async #keep(name: string, lifetime: number, ids: readonly string[]): Promise<Kept> {
    const statement = `select ${this.#names.call('keep')}($1, $2, $3), $0`
    const work = async (connection: PostgresConnection, sent: number): Promise<Kept> => {
      const text = await connection.ask(statement, [name, String(lifetime), ids.join(' ')])
      const [time, next, ahead, first, lost] = JSON.parse(String(text)) as KeptAnswer
      connection.clock.learn(time, sent)
      return { grantAt: this.#clock.now() + (next ?? 0), rank: ahead, first: first ?? undefined, lost }
    }
    return this.#connections.run(work, { patience: requestLimit(lifetime) })
  }

  #busy(claim: Claim, answer: Answer, listens: boolean | undefined, isTold: boolean): Busy {
    const { queue } = claim
    const [, next, ahead, waits, found, wasSeen] = answer as BusyAnswer
    const isNotified = this.#notifications?.subscription !== undefined
    const delay = queue && !waits ? LOCKED : retryAfter(next, ahead, claim, isNotified)
    if (isTold) this.#places.told(claim, { grantAt: this.#clock.now() + next, rank: ahead, isUnseen: !wasSeen })
    const kept = isTold && listens && waits
    const holder = found ? recordOf(claim.name, found) : undefined
    // A release that came meanwhile did not see a position that was not yet committed. For the waiters that are kept, one
    // request checks that.
    return { held: false, retryAfter: delay, ahead, listens: listens && (kept || wasSeen), kept, holder }
  }
}

type HolderAnswer = [token: string, owner: string, note: string, remaining: number, limit?: number, slots?: number[]]

/** `next`: milliseconds until the answer may be different. `wasSeen`: the claim had its position before this request. */
type BusyAnswer = [
  kind: string,
  next: number,
  ahead: number,
  waits: boolean,
  holder: HolderAnswer | null,
  wasSeen: boolean,
  isBlocked: boolean,
]

function granted([, token, slots]: Answer, ttl: number): Grant {
  return { held: true, token: BigInt(String(token)), ttl, ...slotsOf(slots as number[] | undefined) }
}

function recordOf(name: string, [token, owner, note, remaining, limit, slots]: HolderAnswer): LeaseRecord {
  return {
    name,
    state: 'held',
    owner,
    note,
    token: BigInt(token),
    remaining,
    ...(limit && { limit }),
    ...slotsOf(slots),
  }
}

/** `next`: milliseconds until the first of the waiters may be granted. `ahead`: the number of others before it. */
type KeptAnswer = [time: number, next: number | null, ahead: number, first: string | null, lost: string[]]

/** Uses the function for a single request, which needs no JSON, if there is only one. */
function askOneOr(
  connection: PostgresConnection,
  one: string,
  many: string,
  requests: readonly Parameters[],
): Promise<unknown> {
  const [lone] = requests
  if (!lone || requests.length > 1) return connection.ask(many, [toJson(requests)])
  return connection.ask(one, Object.values(lone).map(String))
}

function withRoundTrips(requests: readonly Parameters[], measured: number): Parameters[] {
  return requests.map(request => {
    const round_trip = Number(request.round_trip)
    return { ...request, round_trip: roundTripOf(round_trip === UNKNOWN ? measured : round_trip) }
  })
}

function toJson(requests: readonly Parameters[]): string {
  return JSON.stringify(requests.map((parameters, i) => ({ i, ...parameters })))
}

function locked(name: string): LeaseError {
  const message = `a transaction, such as one of a fence, has locked the row of ${JSON.stringify(name)}, and nothing was done: retry`
  return new LeaseError('STORE_UNAVAILABLE', message)
}
