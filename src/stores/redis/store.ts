import { randomUUID } from 'node:crypto'
import type {
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
import { LONGEST_REQUEST, requestLimit } from '../../contract/time.ts'
import type { Kept } from '../shared/local-queue.ts'
import type { Notifications } from '../shared/notifications.ts'
import { Places } from '../shared/places.ts'
import { askAgainAfter } from '../shared/queue.ts'
import { reportStale } from '../shared/requests.ts'
import type { RedisDriver } from './client.ts'
import { guaranteesOf } from './guarantees.ts'
import { inspection } from './inspection.ts'
import { Keys } from './keys.ts'
import { notificationsOf } from './notifications.ts'
import { detailsOf, holderOf } from './record.ts'
import { Requests } from './requests.ts'
import { MEMORY } from './script.ts'
import { readSelection, selectionRequest } from './selection.ts'
import { script } from './verbs.ts'

/**
 * Milliseconds for which a name that was not released keeps its value, where a counter of the server covers its token. Its
 * waiters need it for the order.
 */
const SHORT_MEMORY = 3_600_000

/** Does not abort: a position is kept for waiters that come and go. */
const NEVER = new AbortController().signal

/** The parameters of a release: for how long an unknown claim is refused. */
const FORGET = `${LONGEST_REQUEST} 0 0 `

export class RedisStore implements Store {
  readonly kind: string
  readonly guarantees: Guarantees
  /** Only where a connection can subscribe. */
  readonly watch?: NonNullable<Store['watch']>
  /** Not in a cluster, where several names are on several nodes. */
  readonly acquireSome?: NonNullable<Store['acquireSome']>
  readonly #keys: Keys
  readonly #memory: number
  readonly #requests: Requests
  readonly #notifications: Notifications
  readonly #places = new Places(
    (name, lifetime, ids) => this.#keep(name, lifetime, ids),
    id => this.#notifications.notify(id),
  )

  constructor(driver: RedisDriver, prefix: string) {
    this.kind = driver.isCluster ? 'redis cluster' : 'redis'
    this.guarantees = guaranteesOf(driver)
    this.#keys = new Keys(driver.keyPrefix + prefix)
    const channel = driver.canListen ? this.#keys.channel(randomUUID()) : '-'
    this.#memory = driver.isCluster ? MEMORY : SHORT_MEMORY
    const preamble = driver.isCluster
      ? { keys: [], args: [channel, '1'] }
      : { keys: [this.#keys.counter], args: [channel, '0'] }
    this.#requests = new Requests(driver, {
      script,
      prepare: async () => preamble,
      notified: message => this.#notifications.notify(message),
      missing: requests => {
        const asking = new Set(requests.map(({ id }) => id))
        const keys = new Set(requests.flatMap(({ key, others = [] }) => [key, ...others]))
        for (const key of keys) this.#places.missed(this.#keys.nameOf(key) ?? '', asking)
      },
    })
    this.#notifications = notificationsOf(driver, channel)
    if (!driver.isCluster) this.acquireSome = (selection, signal) => this.#acquireSome(selection, signal)
    if (!driver.canListen) return
    this.watch = async (claim, wake, signal) => {
      await this.#notifications.watch(claim.id, wake, signal)
      if (claim.queue) this.#places.add(claim, wake, signal)
    }
  }

  acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    const { name, id, ttl, queue } = claim
    const { subscription } = this.#notifications
    const parameters = `${ttl} ${ttl + this.#memory} ${queue ? 1 : 0} ${detailsOf(claim)}`
    const request = { verb: 'acquire', key: this.#keys.lease(name), id, parameters, limit: requestLimit(ttl) }
    return this.#requests.put(request, signal, (value, now) => {
      const answer = String(value)
      if (answer === 'x') {
        reportStale('redis', 'withdrawn')
        return { held: false, retryAfter: LONGEST_REQUEST }
      }
      const grant = grantOf(answer, ttl)
      if (!grant) return this.#busy(claim, now, answer, this.#notifications.covers(subscription))
      this.#places.granted(claim)
      return grant
    })
  }

  renew({ name, id, ttl }: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    const parameters = `${ttl} ${ttl + this.#memory} 0 `
    const request = { verb: 'renew', key: this.#keys.lease(name), id, parameters, limit: requestLimit(ttl) }
    return this.#requests.put(request, signal, answer => grantOf(String(answer), ttl))
  }

  annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    const { name, id, ttl } = claim
    const parameters = `0 0 0 ${detailsOf(claim)}`
    const request = { verb: 'annotate', key: this.#keys.lease(name), id, parameters, limit: requestLimit(ttl) }
    return this.#requests.put(request, signal, isDone)
  }

  release({ name, id }: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    const hasWaited = this.#places.remove(name, id)
    const request = { verb: 'release', key: this.#keys.lease(name), id, parameters: FORGET }
    const released = this.#requests.put(request, signal, answer => (isDone(answer) ? 'released' : 'gone'))
    if (!hasWaited) this.#places.prompt(name, id)
    return released
  }

  inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    return inspection(this.#requests, this.#keys, query, signal)
  }

  break(name: string, _by: string, signal: AbortSignal): Promise<bigint | undefined> {
    const key = this.#keys.lease(name)
    const request = { verb: 'break', key, id: '-', parameters: `0 ${this.#memory} 0 `, limit: LONGEST_REQUEST }
    return this.#requests.put(request, signal, answer => tokenOf(String(answer)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#requests.close()
    this.#notifications.close()
    this.#places.close()
  }

  #acquireSome(selection: Selection, signal: AbortSignal): Promise<SomeGranted | NoneGranted> {
    const { claims, gate } = selection
    const { subscription } = this.#notifications
    const request = selectionRequest(this.#keys, selection, this.#memory)
    return this.#requests.put(request, signal, (value, now) => {
      const answer = readSelection(String(value), claims)
      if (answer.held) this.#places.remove(gate.name, gate.id)
      if (answer.held || !gate.queue) return answer
      const { isGated, free, holder, freeAt, ahead } = answer
      if (!freeAt) {
        reportStale('redis', 'withdrawn')
        return { held: false, isGated, free, wait: { retryAfter: LONGEST_REQUEST } }
      }
      const listens = this.#notifications.covers(subscription)
      if (isGated) return { held: false, isGated, free, wait: this.#wait(gate, now, freeAt, ahead, listens) }
      if (!signal.aborted) this.#places.entered(gate) // else it may be withdrawn
      const retryAfter = Math.min(gate.ttl / 3, this.#askAgainAfter(gate, now, freeAt, ahead))
      return { held: false, isGated, free, holder, wait: { retryAfter, listens } }
    })
  }

  /** Keeps waiters of this process, which are in the order of their positions. */
  #keep(name: string, lifetime: number, ids: readonly string[]): Promise<Kept> {
    const parameters = `${lifetime} 0 0 ${ids.join(' ')}`
    const request = { verb: 'keep', key: this.#keys.lease(name), id: '-', parameters, limit: requestLimit(lifetime) }
    return this.#requests.put(request, NEVER, (answer, now) => {
      const [free, rank, first, ...lost] = String(answer).split(' ')
      return { freeAt: performance.now() + Number(free) - now, rank: Number(rank), first, lost }
    })
  }

  #busy(claim: Claim, now: number, answer: string, listens: boolean): Busy {
    const { name } = claim
    const [free = '', place = ''] = answer.slice(1).split(' ', 2)
    const lease = answer.slice(free.length + place.length + 3)
    const freeAt = Number(free)
    const holder = lease ? holderOf(name, lease, freeAt - now) : undefined
    return { held: false, ...this.#wait(claim, now, freeAt, Number(place), listens), holder }
  }

  /** A claim was told that it must wait. */
  #wait(claim: Claim, now: number, freeAt: number, ahead: number, listens: boolean): Omit<Busy, 'held' | 'holder'> {
    const kept = claim.queue && listens && freeAt > now
    if (claim.queue) this.#places.told(claim, { freeAt: performance.now() + freeAt - now, rank: ahead })
    return { retryAfter: this.#askAgainAfter(claim, now, freeAt, ahead), ahead, listens, kept }
  }

  #askAgainAfter({ ttl, queue }: Claim, now: number, freeAt: number, ahead: number): number {
    return askAgainAfter(now, freeAt, ahead, ttl, queue, this.#notifications.subscription !== undefined)
  }
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
