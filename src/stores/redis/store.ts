import { randomId } from '../../contract/random-id.ts'
import type {
  BreakParameters,
  Busy,
  Claim,
  ClaimKey,
  Grant,
  Guarantees,
  LeaseRecord,
  NoneGranted,
  Query,
  Selection,
  SomeGranted,
  Store,
} from '../../contract/store.ts'
import { LONGEST_REQUEST, requestLimit, roundTripOf, systemClock } from '../../contract/time.ts'
import { reportStale } from '../shared/batched-requests.ts'
import type { Kept } from '../shared/local-queue.ts'
import type { Notifications } from '../shared/notifications.ts'
import { Places } from '../shared/places.ts'
import { askAgainAfter } from '../shared/queue.ts'
import { NEVER } from '../shared/timeouts.ts'
import type { RedisDriver } from './client.ts'
import type { Preamble } from './connection.ts'
import { guaranteesOf } from './guarantees.ts'
import { inspection } from './inspection.ts'
import { Keys } from './keys.ts'
import { notificationsOf } from './notifications.ts'
import { detailsOf, holderOf } from './record.ts'
import { type Read, Requests } from './requests.ts'
import { FORGET, MEMORY } from './script.ts'
import { readSelection, selectionRequest } from './selection.ts'
import { script } from './verbs.ts'

/**
 * Milliseconds for which a name that was not released keeps its value, where a counter of the server covers its token. Its
 * waiters need it for the order.
 */
const SHORT_MEMORY = 3_600_000

/** The largest number of waiters that one request keeps: Lua passes less than 8,000 values to a command, two for each. */
const MOST_KEPT = 3_900

export class RedisStore implements Store {
  readonly kind: string
  readonly guarantees: Guarantees
  /** Only where a connection can subscribe. */
  readonly watch?: NonNullable<Store['watch']>
  /** Not in a cluster, where several names are on several nodes. */
  readonly acquireSome?: NonNullable<Store['acquireSome']>
  readonly #clock = systemClock()
  readonly #keys: Keys
  readonly #memory: number
  readonly #requests: Requests
  readonly #notifications: Notifications
  /** The holder in the last busy answer, and what it was made of. The waiters of one call share it. */
  #holder: LeaseRecord | undefined
  #seen = ''
  readonly #places = new Places(
    this.#clock,
    { most: MOST_KEPT, keep: (name, lifetime, ids) => this.#keep(name, lifetime, ids) },
    id => this.#notifications.notify(id),
  )

  constructor(driver: RedisDriver, prefix: string) {
    const { isCluster } = driver
    this.kind = isCluster ? 'redis cluster' : 'redis'
    this.guarantees = guaranteesOf(driver)
    this.#keys = new Keys(driver.keyPrefix + prefix)
    const channel = driver.canListen ? this.#keys.channel(randomId()) : '-'
    this.#memory = isCluster ? MEMORY : SHORT_MEMORY
    const preamble: Preamble = {
      keys: isCluster ? [] : [this.#keys.counter],
      args: roundTrip => [channel, isCluster ? '1' : '0', String(roundTripOf(roundTrip))],
    }
    this.#requests = new Requests(driver, {
      script,
      prepare: async () => preamble,
      notified: message => this.#notifications.notify(message),
      replaced: () => this.#notifications.move(),
      missing: requests => {
        const asking = new Set(requests.map(({ id }) => id))
        const keys = new Set(requests.flatMap(({ key, others = [] }) => [key, ...others]))
        for (const key of keys) this.#places.missed(this.#keys.nameOf(key) ?? '', asking)
      },
    })
    this.#notifications = notificationsOf(this.#clock, driver, channel)
    if (!isCluster) this.acquireSome = (selection, signal) => this.#acquireSome(selection, signal)
    if (!driver.canListen) return
    this.watch = async (claim, wake, signal) => {
      await this.#notifications.watch(claim.id, wake, signal, () => this.#places.remove(claim, wake))
      if (claim.queue && !signal.aborted) this.#places.add(claim, wake)
    }
  }

  acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    const { ttl, queue, roundTrip } = claim
    const { subscription } = this.#notifications
    const queues = queue && roundTrip !== undefined ? `1${roundTripOf(roundTrip)}` : Number(queue)
    const parameters = `${ttl} ${ttl + this.#memory} ${queues} ${detailsOf(claim)}`
    return this.#ask('acquire', claim, parameters, signal, (value, now) => {
      const answer = String(value)
      if (answer === 'x') return { held: false, ...withdrawn() }
      const grant = grantOf(answer, ttl)
      // Nobody waits for this answer, and a later request may have been answered already.
      if (!grant && signal.aborted) return { held: false, retryAfter: LONGEST_REQUEST }
      if (!grant) return this.#busy(claim, now, answer, this.#notifications.covers(subscription))
      this.#places.granted(claim)
      return grant
    })
  }

  renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    const { ttl } = claim
    const parameters = `${ttl} ${ttl + this.#memory} 0 `
    return this.#ask('renew', claim, parameters, signal, answer => grantOf(String(answer), ttl))
  }

  annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    return this.#ask('annotate', claim, `0 0 0 ${detailsOf(claim)}`, signal, isDone)
  }

  release({ name, id }: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    const isWatched = this.#places.left(name, id)
    const request = { verb: 'release', key: this.#keys.lease(name), id, parameters: FORGET }
    const released = this.#requests.put(request, signal, answer => (isDone(answer) ? 'released' : 'gone'))
    if (!isWatched) this.#places.prompt(name, id)
    return released
  }

  inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    return inspection(this.#requests, this.#keys, query, signal)
  }

  break(name: string, { token }: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    const claim = { name, id: '-', ttl: MEMORY } // so the request has the longest limit
    return this.#ask('break', claim, `0 ${this.#memory} 0 ${token ?? ''}`, signal, answer => tokenOf(String(answer)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#requests.close()
    this.#notifications.close()
    this.#places.close()
  }

  #ask<Value>(
    verb: string,
    { name, id, ttl }: Pick<Claim, 'name' | 'id' | 'ttl'>,
    parameters: string,
    signal: AbortSignal,
    read: Read<Value>,
    others?: readonly string[],
  ): Promise<Value> {
    const request = { verb, key: this.#keys.lease(name), id, parameters, others, limit: requestLimit(ttl) }
    return this.#requests.put(request, signal, read)
  }

  #acquireSome(selection: Selection, signal: AbortSignal): Promise<SomeGranted | NoneGranted> {
    const { claims, gate } = selection
    const { subscription } = this.#notifications
    const { parameters, others } = selectionRequest(this.#keys, selection, this.#memory)
    const read: Read<SomeGranted | NoneGranted> = (value, now) => {
      const answer = readSelection(String(value), claims)
      if (answer.held) this.#places.left(gate.name, gate.id)
      if (answer.held || !gate.queue) return answer
      const { isGated, freeAt, ahead } = answer
      if (!freeAt) return { ...answer, wait: withdrawn() }
      const listens = this.#notifications.covers(subscription)
      if (isGated) return { ...answer, wait: this.#wait(gate, now, freeAt, ahead, listens) }
      if (!signal.aborted) this.#places.entered(gate) // else it may be withdrawn
      const retryAfter = Math.min(gate.ttl / 3, this.#askAgainAfter(gate, now, freeAt, ahead))
      return { ...answer, wait: { retryAfter, listens } }
    }
    return this.#ask('acquireSome', gate, parameters, signal, read, others)
  }

  /** Keeps waiters of this process, which are in the order of their positions. */
  #keep(name: string, lifetime: number, ids: readonly string[]): Promise<Kept> {
    const parameters = `${lifetime} 0 0 ${ids.join(' ')}`
    // Not cancelled: a position is kept for waiters that come and go.
    return this.#ask('keep', { name, id: '-', ttl: lifetime }, parameters, NEVER, (answer, now) => {
      const [free, rank, first, ...lost] = String(answer).split(' ')
      return { freeAt: this.#clock.now() + Number(free) - now, rank: Number(rank), first, lost }
    })
  }

  #busy(claim: Claim, now: number, answer: string, listens: boolean): Busy {
    const { name } = claim
    const [free = '', place = ''] = answer.slice(1).split(' ', 2)
    const lease = answer.slice(free.length + place.length + 3)
    const freeAt = Number(free)
    const remaining = freeAt - now
    const seen = `${remaining} ${name} ${lease}`
    if (seen !== this.#seen) this.#holder = lease ? holderOf(name, lease, remaining) : undefined
    this.#seen = seen
    return { held: false, ...this.#wait(claim, now, freeAt, Number(place), listens), holder: this.#holder }
  }

  /** A claim was told that it must wait. */
  #wait(claim: Claim, now: number, freeAt: number, ahead: number, listens: boolean): Omit<Busy, 'held' | 'holder'> {
    const kept = claim.queue && listens && freeAt > now
    if (claim.queue) this.#places.told(claim, { freeAt: this.#clock.now() + freeAt - now, rank: ahead })
    return { retryAfter: this.#askAgainAfter(claim, now, freeAt, ahead), ahead, listens, kept }
  }

  #askAgainAfter({ ttl, queue }: Claim, now: number, freeAt: number, ahead: number): number {
    return askAgainAfter(now, freeAt, ahead, ttl, queue, this.#notifications.subscription !== undefined)
  }
}

/** A request of a withdrawn claim came late: nobody waits for its answer. */
function withdrawn(): { readonly retryAfter: number } {
  reportStale('redis', 'withdrawn')
  return { retryAfter: LONGEST_REQUEST }
}

function grantOf(answer: string, ttl: number): Grant | undefined {
  const token = tokenOf(answer)
  return token ? { held: true, token, ttl } : undefined
}

function tokenOf(answer: string): bigint | undefined {
  return answer.startsWith('+') ? BigInt(answer.slice(1)) : undefined
}

function isDone(answer: unknown): boolean {
  return String(answer) === '1'
}
