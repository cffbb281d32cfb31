import { randomUUID } from 'node:crypto'
import type { Busy, Claim, ClaimKey, Grant, Guarantees, LeaseRecord, Query, Store } from '../../contract/store.ts'
import { LONGEST_REQUEST, requestLimit } from '../../contract/time.ts'
import { tellGhost } from '../shared/ghost.ts'
import { askAgainAfter, pollAfter } from '../shared/queue.ts'
import type { Wakes } from '../shared/wakes.ts'
import type { Driver } from './client.ts'
import { Connection } from './connection.ts'
import { warnOfEviction } from './eviction.ts'
import { guaranteesOf } from './guarantees.ts'
import { Keys } from './keys.ts'
import { namesFrom } from './names.ts'
import { detailsOf, holderOf, waiterOf } from './record.ts'
import { Requests } from './requests.ts'
import { MEMORY } from './script.ts'
import { script } from './verbs.ts'
import { wakesOf } from './wakes.ts'

/** What a release says of a claim that is unknown: for how long it is refused. */
const FORGET = `${LONGEST_REQUEST} 0 0 `

/** Names looked at by one request of `inspect`. */
const PAGE = 1_000

export class RedisStore implements Store {
  readonly kind: string
  readonly guarantees: Guarantees
  /** Only where messages can be heard. */
  readonly watch?: NonNullable<Store['watch']>
  readonly #keys: Keys
  readonly #connection: Connection
  readonly #requests: Requests
  readonly #wakes: Wakes

  constructor(driver: Driver, prefix: string) {
    this.kind = driver.isCluster ? 'redis cluster' : 'redis'
    this.guarantees = guaranteesOf(driver)
    this.#keys = new Keys(driver.keyPrefix + prefix)
    const channel = driver.canListen ? this.#keys.channel(randomUUID()) : '-'
    const preamble = { keys: [], args: [channel, driver.isCluster ? '1' : '0'] }
    const dialect = { script, greet: async () => preamble }
    this.#connection = new Connection(driver, dialect, link => void warnOfEviction(link))
    this.#requests = new Requests(this.#connection, driver.isCluster)
    this.#wakes = wakesOf(driver, channel)
    if (driver.canListen) this.watch = ({ id }, wake, signal) => this.#wakes.watch(id, wake, signal)
  }

  async acquire(claim: Claim, signal: AbortSignal): Promise<Grant | Busy> {
    const { name, id, ttl, queue } = claim
    const ears = this.#wakes.ears
    const wishes = `${ttl} ${ttl + MEMORY} ${queue ? 1 : 0} ${detailsOf(claim)}`
    const question = { key: this.#keys.lease(name), id, verb: 'acquire', wishes }
    const { now, value } = await this.#requests.put(question, { limit: requestLimit(ttl), signal })
    const answer = String(value)
    if (answer === 'x') {
      tellGhost('redis', 'withdrawn')
      return { held: false, retryAfter: LONGEST_REQUEST }
    }
    if (answer.startsWith('+')) return { held: true, token: BigInt(answer.slice(1)), ttl }
    return this.#busy(claim, now, answer, ears !== undefined && ears === this.#wakes.ears)
  }

  async renew({ name, id, ttl }: Claim, signal: AbortSignal): Promise<Grant | undefined> {
    const question = { key: this.#keys.lease(name), id, verb: 'renew', wishes: `${ttl} ${ttl + MEMORY} 0 ` }
    const { value } = await this.#requests.put(question, { limit: requestLimit(ttl), signal })
    const token = tokenOf(value)
    return token === undefined ? undefined : { held: true, token, ttl }
  }

  async annotate(claim: Claim, signal: AbortSignal): Promise<boolean> {
    const { name, id, ttl } = claim
    const question = { key: this.#keys.lease(name), id, verb: 'annotate', wishes: `0 0 0 ${detailsOf(claim)}` }
    const { value } = await this.#requests.put(question, { limit: requestLimit(ttl), signal })
    return String(value) === '1'
  }

  async release({ name, id }: ClaimKey, signal: AbortSignal): Promise<'released' | 'gone'> {
    const question = { key: this.#keys.lease(name), id, verb: 'release', wishes: FORGET }
    const { value } = await this.#requests.put(question, { signal })
    return String(value) === '1' ? 'released' : 'gone'
  }

  async *inspect(query: Query, signal: AbortSignal): AsyncIterable<LeaseRecord> {
    const names =
      'name' in query ? [query.name] : (await namesFrom(this.#connection, this.#keys, query.prefix, signal)).sort()
    while (names.length > 0) {
      const page = names.splice(0, PAGE)
      const found = await Promise.all(page.map(name => this.#look(name, signal)))
      yield* found.flat()
    }
  }

  async break(name: string, _by: string, signal: AbortSignal): Promise<bigint | undefined> {
    const question = { key: this.#keys.lease(name), id: '-', verb: 'break', wishes: '0 0 0 ' }
    const { value } = await this.#requests.put(question, { limit: LONGEST_REQUEST, signal })
    return tokenOf(value)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connection.close()
    this.#wakes.close()
  }

  #busy({ name, ttl, queue }: Claim, now: number, answer: string, listens: boolean): Busy {
    const [free = '', place = ''] = answer.slice(1).split(' ', 2)
    const lease = answer.slice(free.length + place.length + 3)
    const [freeAt, ahead] = [Number(free), Number(place)]
    const retryAfter = askAgainAfter(now, freeAt, ahead, ttl, queue)
    return {
      held: false,
      retryAfter: queue && !this.#wakes.ears ? Math.min(retryAfter, pollAfter(ahead)) : retryAfter,
      ahead,
      listens,
      holder: lease ? holderOf(name, lease, freeAt - now) : undefined,
    }
  }

  /** A long queue is read in pages, between which it may change. */
  async #look(name: string, signal: AbortSignal): Promise<LeaseRecord[]> {
    const key = this.#keys.lease(name)
    const records: LeaseRecord[] = []
    let position = 0
    for (let after = '0'; after !== ''; ) {
      const question = { key, id: '-', verb: 'inspect', wishes: `0 0 0 ${after}` }
      const { now, value } = await this.#requests.put(question, { signal })
      const [lease = '', remaining = '', next = '', ...line] = (value as unknown[]).map(String)
      if (records.length === 0 && lease) records.push(holderOf(name, lease, Number(remaining)))
      for (let index = 0; index < line.length; index += 2) {
        const [lapses, waiter] = [Number(line[index]), line[index + 1] ?? '']
        records.push(waiterOf(name, waiter, lapses - now, position++))
      }
      signal.throwIfAborted()
      after = next
    }
    return records
  }
}

function tokenOf(value: unknown): bigint | undefined {
  const answer = String(value)
  return answer.startsWith('+') ? BigInt(answer.slice(1)) : undefined
}
