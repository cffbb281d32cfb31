import { LeaseError } from '../../contract/errors.ts'
import type { Grant } from '../../contract/store.ts'
import type { Gateway } from './gateway.ts'
import type { Keys } from './keys.ts'
import type { Header, KeyValue, LeaseAnswer } from './messages.ts'
import { shown } from './record.ts'
import { firstOf, type View, viewOf } from './view.ts'

/**
 * The answer to a keepalive: the ttl in ms, or 0 if the lease does not exist, and the term of the leader that renewed it.
 */
export interface KeepAlive {
  readonly ttl: number
  readonly term: number
}

/** The value at a key, and the term in which a majority confirmed it. */
export interface Sight {
  readonly found: KeyValue | undefined
  readonly term: number
}

/** The number of keys that a name has, and the last revision that wrote one of them. */
export interface Extent {
  readonly count: number
  readonly written: bigint
}

/**
 * The largest number of keepalives in one request. They fit into 512 bytes, which the gateway has read when its answer
 * begins. Go's HTTP/1.1 server discards the rest of the request: of 32 keepalives some were lost. A follower also forwards
 * them to the leader one by one.
 */
const MOST_BEATS = 16

/** The largest number of reads in one request. By default etcd accepts 128 operations in one transaction. */
const MOST_READS = 60

/** Joins the keepalives and reads of one turn of the event loop into a few requests. */
export class Requests {
  readonly #beats: Batched<KeepAlive>
  readonly #sights: Batched<Sight>
  readonly #views: Batched<View>
  readonly #extents: Batched<Extent>

  constructor(gateway: Gateway, keys: Keys) {
    this.#beats = new Batched(MOST_BEATS, async (leases, limit) => {
      const body = leases.map(ID => JSON.stringify({ ID })).join('\n')
      const answers = await gateway.call<LeaseAnswer>('lease/keepalive', body, limit)
      return new Map(answers.map(({ header, ID, TTL = 0 }) => [ID, { ttl: Number(TTL) * 1_000, term: termOf(header) }]))
    })
    this.#sights = new Batched(MOST_READS, async (wanted, limit) => {
      const { header, responses = [] } = await gateway.txn({ success: wanted.map(readOf) }, limit)
      const term = termOf(header)
      return new Map(wanted.map((key, index) => [key, { found: responses[index]?.response_range?.kvs?.[0], term }]))
    })
    this.#views = new Batched(MOST_READS, async (names, limit) => {
      const success = names.flatMap(name => firstOf(keys, name))
      const { header, responses = [] } = await gateway.txn({ success }, limit)
      const answers = responses.map(({ response_range = {} }) => response_range)
      return new Map(
        names.map((name, index) => {
          const [holders = {}, waiters = {}] = answers.slice(2 * index)
          return [name, viewOf(holders, waiters, header.revision)]
        }),
      )
    })
    this.#extents = new Batched(MOST_READS, async (names, limit) => {
      const newest = { sort_order: 'DESCEND', sort_target: 'MOD', limit: '1', keys_only: true }
      const success = names.map(name => ({ request_range: { ...keys.all(name), ...newest } }))
      const { responses = [] } = await gateway.txn({ success }, limit)
      return new Map(
        names.map((name, index) => {
          const { kvs = [], count = '0' } = responses[index]?.response_range ?? {}
          return [name, { count: Number(count), written: BigInt(kvs[0]?.mod_revision ?? '0') }]
        }),
      )
    })
  }

  /** Renews a lease for its ttl. */
  keepAlive(lease: string, limit: number): Promise<KeepAlive> {
    return this.#beats.ask(lease, limit)
  }

  /** Reads one key. The read is linearizable. */
  look(key: string, limit: number): Promise<Sight> {
    return this.#sights.ask(key, limit)
  }

  /** Reads the holders and the first waiters. The read is linearizable. */
  view(name: string, limit: number): Promise<View> {
    return this.#views.ask(name, limit)
  }

  /** Reads how many keys a name has. The read is linearizable. */
  extent(name: string, limit: number): Promise<Extent> {
    return this.#extents.ask(name, limit)
  }
}

function readOf(key: string): object {
  return { request_range: { key } }
}

export function termOf(header: Header): number {
  return Number(header.raft_term)
}

/**
 * Returns the grant if the leader that renewed the lease has the term in which a majority confirmed the holder, or a later
 * term.
 */
export function granted(
  revision: string,
  { ttl, term }: KeepAlive,
  confirmed: number,
  slots: readonly number[],
): Grant {
  if (ttl === 0) throw vanished()
  if (term >= confirmed) return { held: true, token: BigInt(revision), ttl, slots: shown(slots) }
  const message =
    'the leader of the etcd cluster changed, so the answer of the old leader does not count: the request is sent again'
  throw new LeaseError('OUTCOME_UNKNOWN', message)
}

/** The error for a claim whose outcome is unknown. The core asks again. */
export function vanished(): LeaseError {
  return new LeaseError('OUTCOME_UNKNOWN', 'the lease of the claim came or went while it was asked about')
}

interface Asked<Answer> {
  limit: number
  readonly promise: Promise<Answer>
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/** The number of requests of each kind in flight. The keepalives of a thousand waiters leave most connections to others. */
const AT_ONCE = 8

/** Joins the requests of one turn of the event loop, and those that wait. Requests for the same key share an answer. */
class Batched<Answer> {
  readonly #most: number
  readonly #send: (keys: string[], limit: number) => Promise<Map<string, Answer>>
  readonly #waiting = new Map<string, Asked<Answer>>()
  #inFlight = 0

  constructor(most: number, send: (keys: string[], limit: number) => Promise<Map<string, Answer>>) {
    this.#most = most
    this.#send = send
  }

  ask(key: string, limit: number): Promise<Answer> {
    if (this.#waiting.size === 0) process.nextTick(() => this.#flush())
    let asked = this.#waiting.get(key)
    if (!asked) {
      asked = { limit, ...Promise.withResolvers<Answer>() }
      this.#waiting.set(key, asked)
    }
    asked.limit = Math.max(asked.limit, limit)
    return asked.promise
  }

  #flush(): void {
    while (this.#waiting.size > 0 && this.#inFlight < AT_ONCE) {
      const next: [string, Asked<Answer>][] = []
      for (const entry of this.#waiting) {
        if (next.push(entry) === this.#most) break
      }
      for (const [key] of next) this.#waiting.delete(key)
      this.#inFlight += 1
      void this.#carryOut(next).then(() => {
        this.#inFlight -= 1
        this.#flush()
      })
    }
  }

  async #carryOut(all: readonly [string, Asked<Answer>][]): Promise<void> {
    try {
      // Each caller has its own limit, so this limit is that of the caller that waits longest.
      const limit = Math.max(...all.map(([, asked]) => asked.limit))
      const answers = await this.#send(
        all.map(([key]) => key),
        limit,
      )
      for (const [key, asked] of all) {
        const answer = answers.get(key)
        if (answer) asked.resolve(answer)
        else if (all.length > 1) void this.#carryOut([[key, asked]])
        else asked.reject(new LeaseError('OUTCOME_UNKNOWN', 'etcd answered only a part of the request'))
      }
    } catch (error) {
      for (const [, asked] of all) asked.reject(error)
    }
  }
}
