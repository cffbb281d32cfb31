import { randomUUID } from 'node:crypto'
import { LeaseError } from '../../contract/errors.ts'
import type { Busy, Claim, ClaimKey, Grant, Guarantees, LeaseRecord, Query, Store } from '../../contract/store.ts'
import { LONGEST_REQUEST, requestLimit } from '../../contract/time.ts'
import { Connection } from '../shared/connection.ts'
import { tellGhost } from '../shared/ghost.ts'
import { askAgainAfter, pollAfter } from '../shared/queue.ts'
import type { Wakes } from '../shared/wakes.ts'
import { annotate } from './annotate.ts'
import type { Driver } from './client.ts'
import { exhausted, freeExhausted } from './exhausted.ts'
import { failure, isReply } from './failure.ts'
import { guaranteesOf } from './guarantees.ts'
import { inspection } from './inspection.ts'
import type { Names } from './names.ts'
import { type Answer, Requests } from './requests.ts'
import { Session } from './session.ts'
import { wakesOf } from './wakes.ts'

/** Milliseconds after which to ask again for a row that somebody else had locked. */
const LOCKED = 10

/** So many names are looked at for what is idle, each time that half as many leases were granted. */
const PRUNED = 1_000

export interface Wishes {
  readonly names: Names
  readonly create: boolean
  /** Where to hear messages. */
  readonly ears: Driver | undefined
}

export class PostgresStore implements Store {
  readonly kind = 'postgres'
  readonly guarantees: Guarantees
  /** Only where messages can be heard. */
  readonly watch?: NonNullable<Store['watch']>
  readonly #names: Names
  readonly #connection: Connection<Session>
  readonly #acquires: Requests
  readonly #renewals: Requests
  readonly #notes: Requests
  readonly #releases: Requests
  readonly #wakes: Wakes | undefined
  #sincePruned = 0
  #prunedTo = ''

  constructor(driver: Driver, { names, create, ears }: Wishes) {
    this.guarantees = guaranteesOf(ears !== undefined)
    this.#names = names
    const connection = new Connection<Session>({
      open: closing => Session.open(driver, names, create, closing),
      failure: (error, session) => failure(error, session !== undefined),
      judge: error => (isReply(error) ? 'keep' : 'retire'),
    })
    const channel = `holdfast_${randomUUID().replaceAll('-', '')}`
    this.#connection = connection
    const [acquire, renew, release] = [
      `select ${names.call('acquire')}($1, ${ears ? '$2' : 'null'}), $0`,
      `select ${names.call('renew')}($1), $0`,
      `select ${names.call('release')}($1), $0`,
    ]
    this.#acquires = new Requests(connection, (link, orders) => link.ask(acquire, ears ? [orders, channel] : [orders]))
    this.#renewals = new Requests(connection, (link, orders) => link.ask(renew, [orders]))
    this.#notes = new Requests(connection, (link, orders) => link.askInTime(annotate(names), [orders]))
    this.#releases = new Requests(connection, (link, orders) => link.ask(release, [orders]))
    if (!ears) return
    const wakes = wakesOf(ears, channel)
    this.#wakes = wakes
    this.watch = ({ id }, wake, signal) => wakes.watch(id, wake, signal)
  }

  async acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    const { name, id, owner, note, ttl, queue } = claim
    const ears = this.#wakes?.ears
    const answer = await this.#acquires.put({ name, id, owner, note, ttl, queue }, { ttl, signal })
    const [kind, token] = answer
    if (kind === 'gone') {
      tellGhost('postgres', 'withdrawn')
      return { held: false, retryAfter: LONGEST_REQUEST }
    }
    if (kind === 'busy') return this.#busy(claim, answer, ears !== undefined && ears === this.#wakes?.ears)
    if (kind !== 'held') throw locked(name)
    this.#prune()
    return { held: true, token: BigInt(String(token)), ttl }
  }

  async renew({ name, id, ttl }: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    const [kind, token] = await this.#renewals.put({ name, id, ttl }, { ttl, signal })
    if (kind === 'lost') return undefined
    if (kind !== 'held') throw locked(name)
    return { held: true, token: BigInt(String(token)), ttl }
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
    yield* inspection(this.#connection, this.#names, query, signal)
  }

  async break(name: string, by: string, signal: AbortSignal): Promise<bigint | undefined> {
    signal.throwIfAborted()
    const until = performance.now() + requestLimit(3 * LONGEST_REQUEST)
    const breakLease = `select ${this.#names.call('break')}($1, $2, $3::double precision), $0`
    for (;;) {
      const [kind, token] = await this.#connection.carryOut(async (session, sent): Promise<Answer> => {
        const values = [name, by, String(session.serverTime(until))]
        const text = await session.link.ask(breakLease, values)
        const [time, [answer]] = JSON.parse(String(text)) as [number, [Answer]]
        session.learn(time, sent)
        if (answer[0] !== 'exhausted') return answer
        const freed = Number(await session.link.askInTime(freeExhausted(this.#names), values))
        return freed ? answer : ['skipped']
      })
      if (kind === 'held') return BigInt(String(token))
      if (kind === 'exhausted') throw exhausted('; its lease was ended')
      if (kind === 'lost') return undefined
      if (kind !== 'late' || performance.now() >= until) throw locked(name)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connection.close()
    this.#wakes?.close()
  }

  #busy({ name, ttl, queue }: Claim, answer: Answer, listens: boolean): Busy {
    const [, freeAt, ahead, waits, found] = answer as [string, number, number, boolean, [string, string, string] | null]
    const holder: LeaseRecord | undefined = found
      ? { name, state: 'held', owner: found[1], note: found[2], token: BigInt(found[0]), remaining: freeAt }
      : undefined
    return { held: false, retryAfter: this.#retryAfter(freeAt, ahead, ttl, queue, waits), ahead, listens, holder }
  }

  #retryAfter(freeAt: number, ahead: number, ttl: number, queue: boolean, waits: boolean): number {
    if (queue && !waits) return LOCKED
    const retryAfter = askAgainAfter(0, freeAt, ahead, ttl, queue)
    return queue && !this.#wakes?.ears ? Math.min(retryAfter, pollAfter(ahead)) : retryAfter
  }

  #prune(): void {
    this.#sincePruned += 1
    if (this.#sincePruned < PRUNED / 2) return
    this.#sincePruned = 0
    const statement = `select ${this.#names.call('prune')}($1, ${PRUNED}), $0`
    const work = this.#connection.carryOut(async ({ link }) => String(await link.ask(statement, [this.#prunedTo])))
    work.then(
      last => {
        this.#prunedTo = last
      },
      () => {}, // the next one tries again
    )
  }
}

function locked(name: string): LeaseError {
  const message = `the row of ${JSON.stringify(name)} is locked by a transaction under way, such as a guard: nothing was done`
  return new LeaseError('STORE_UNAVAILABLE', message)
}
