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
import { KeptPositions } from '../wire/kept-positions.ts'
import type { Kept } from '../wire/local-queue.ts'
import type { Notifications } from '../wire/notifications.ts'
import { retryAfter } from '../wire/retry.ts'
import { NEVER } from '../wire/timeouts.ts'
import type { RedisDriver } from './client.ts'
import type { Preamble } from './connection.ts'
import { guaranteesOf } from './guarantees.ts'
import { inspection } from './inspection.ts'
import { Keys } from './keys.ts'
import { LoneRequests } from './lone.ts'
import { notificationsOf } from './notifications.ts'
import { detailsOf, holderOf, slotsOf } from './record.ts'
import { type Read, Requests } from './requests.ts'
import { FORGET, MEMORY } from './script.ts'
import { script } from './verbs.ts'

/**
 * Milliseconds for which a name that was not released keeps its value if a counter of the server covers its token. The
 * waiters of the name need the value for their order.
 */
const SHORT_MEMORY = 3_600_000

/**
 * The largest number of waiters that one request keeps. Lua passes fewer than 8,000 values to a command, and each waiter
 * needs two.
 */
const MOST_KEPT = 3_900

export class RedisStore implements Store {
  readonly kind: string
  readonly guarantees: Guarantees
  /** This exists only if a connection can subscribe. */
  readonly watch?: NonNullable<Store['watch']>
  readonly #clock = systemClock()
  readonly #keys: Keys
  readonly #memory: number
  readonly #requests: Requests
  readonly #notifications: Notifications
  /** The holder in the last busy answer, and the text that it was parsed from. The waiters of one call share it. */
  #holder: LeaseRecord | undefined
  #seen = ''
  readonly #places = new KeptPositions(this.#clock, {
    most: MOST_KEPT,
    keep: (name, lifetime, ids) => this.#keep(name, lifetime, ids),
  })

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
      lone: isCluster ? undefined : new LoneRequests(this.#keys.counter),
      prepare: async () => preamble,
      notified: message => this.#notifications.notify(message),
      replaced: () => this.#notifications.move(),
      missing: requests => {
        const asking = new Set(requests.map(({ id }) => id))
        const keys = new Set(requests.map(({ key }) => key))
        for (const key of keys) this.#places.missed(this.#keys.nameOf(key) ?? '', asking)
      },
    })
    this.#notifications = notificationsOf(this.#clock, driver, channel)
    if (!driver.canListen) return
    this.watch = async (claim, wake, signal) => {
      await this.#notifications.watch(claim.id, wake, signal, () => this.#places.remove(claim, wake))
      if (claim.queue && !signal.aborted) this.#places.add(claim, wake)
    }
  }

  acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    const { ttl, queue, limit = 1, units = 1, roundTrip } = claim
    const { subscription } = this.#notifications
    const queues = queue && roundTrip !== undefined ? `1${roundTripOf(roundTrip)}` : Number(queue)
    const shares = limit > 1 ? `${limit} ${units} ` : ''
    const parameters = `${ttl} ${ttl + this.#memory} ${queues} ${shares}${detailsOf(claim)}`
    return this.#ask('acquire', claim, parameters, signal, (value, now) => {
      const answer = String(value)
      if (answer === 'x') return { held: false, ...withdrawn() }
      const [grant, next] = grantOf(answer, ttl)
      // Nobody waits for this answer, and a later request may already have been answered.
      if (!grant && signal.aborted) return { held: false, retryAfter: LONGEST_REQUEST }
      if (!grant) return this.#busy(claim, now, answer, this.#notifications.covers(subscription))
      this.#places.granted(claim, next && next - now)
      return grant
    })
  }

  renew(claim: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    const { ttl, limit = 1 } = claim
    const [verb, shares] = limit > 1 ? ['renewShared', 1] : ['renew', 0]
    const parameters = `${ttl} ${ttl + this.#memory} ${shares} `
    return this.#ask(verb, claim, parameters, signal, answer => grantOf(String(answer), ttl)[0])
  }

  annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    const { limit = 1 } = claim
    const [verb, shares] = limit > 1 ? ['annotateShared', 1] : ['annotate', 0]
    return this.#ask(verb, claim, `0 0 ${shares} ${detailsOf(claim)}`, signal, isDone)
  }

  release({ name, id }: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    const isWatched = this.#places.watches(name, id)
    const request = { verb: 'release', key: this.#keys.lease(name), id, parameters: FORGET }
    const released = this.#requests.put(request, signal, answer => (isDone(answer) ? 'released' : 'gone'))
    if (!isWatched) this.#places.prompt(name)
    return released
  }

  inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    return inspection(this.#requests, this.#keys, query, signal)
  }

  break(name: string, { token, slot }: BreakParameters, signal: AbortSignal): Promise<bigint | undefined> {
    const claim = { name, id: '-', ttl: MEMORY } // with this ttl the request has the longest limit
    const parameters = `0 ${this.#memory} 0 ${token ?? '-'} ${slot ?? '-'}`
    return this.#ask('break', claim, parameters, signal, answer => tokenOf(String(answer)))
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
  ): Promise<Value> {
    const request = { verb, key: this.#keys.lease(name), id, parameters, limit: requestLimit(ttl) }
    return this.#requests.put(request, signal, read)
  }

  /** Keeps the positions of waiters of this process. `ids` are in the order of the positions. */
  #keep(name: string, lifetime: number, ids: readonly string[]): Promise<Kept> {
    const parameters = `${lifetime} 0 0 ${ids.join(' ')}`
    // This is not cancelled: a position is kept for waiters that come and go.
    return this.#ask('keep', { name, id: '-', ttl: lifetime }, parameters, NEVER, (answer, now) => {
      const [at, rank, first, ...lost] = String(answer).split(' ')
      return { grantAt: this.#clock.now() + Number(at) - now, rank: Number(rank), first, lost }
    })
  }

  #busy(claim: Claim, now: number, answer: string, listens: boolean): Busy {
    const { name, queue } = claim
    const [at = '', place = '', ends = ''] = answer.slice(1).split(' ', 3)
    const lease = answer.slice(at.length + place.length + ends.length + 4)
    const [delay, ahead, remaining] = [Number(at) - now, Number(place), Number(ends) - now]
    const seen = `${remaining} ${name} ${lease}`
    if (seen !== this.#seen) this.#holder = lease ? holderOf(name, lease, remaining) : undefined
    this.#seen = seen
    if (queue) this.#places.told(claim, { grantAt: this.#clock.now() + delay, rank: ahead })
    const isNotified = this.#notifications.subscription !== undefined
    return {
      held: false,
      retryAfter: retryAfter(delay, ahead, claim, isNotified),
      ahead,
      listens,
      kept: queue && listens && delay > 0,
      holder: this.#holder,
    }
  }
}

/** The answer to a request of a withdrawn claim that arrived late. Nobody waits for it. */
function withdrawn(): { readonly retryAfter: number } {
  reportStale('redis', 'withdrawn')
  return { retryAfter: LONGEST_REQUEST }
}

/** Parses `+token` or `+token slots next`. `next` is the time when the next lease of the name ends. */
function grantOf(answer: string, ttl: number): [grant?: Grant, next?: number] {
  if (!answer.startsWith('+')) return []
  const [token = '', slots, next] = answer.slice(1).split(' ')
  if (slots === undefined) return [{ held: true, token: BigInt(token), ttl }]
  return [{ held: true, token: BigInt(token), ttl, slots: slotsOf(slots) }, Number(next)]
}

function tokenOf(answer: string): bigint | undefined {
  return answer.startsWith('+') ? BigInt(answer.slice(1)) : undefined
}

function isDone(answer: unknown): boolean {
  return String(answer) === '1'
}
