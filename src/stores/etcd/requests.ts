import { LeaseError } from '../../contract/errors.ts'
import type { Grant } from '../../contract/store.ts'
import { Batched } from './batched.ts'
import type { Gateway } from './gateway.ts'
import type { Keys } from './keys.ts'
import type { KeepAlive } from './lease-pool.ts'
import type { Header, KeyValue, LeaseAnswer } from './messages.ts'
import { shown } from './record.ts'
import { type Outcome, outcomeOf } from './txn.ts'
import { firstOf, type View, viewOf, wholeOf } from './view.ts'

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

/** The largest number of names of which one request reads all keys: a thousand waiters of one name are 0.4 MB. */
const MOST_WHOLE = 8

/** The largest number of transactions in one request. */
const MOST_TXNS = 64

/** The requests that share a few: keepalives, reads, and transactions that take or leave a name. */
export class Requests {
  readonly #beats: Batched<string, KeepAlive>
  readonly #sights: Batched<string, Sight>
  readonly #views: Batched<string, View>
  readonly #wholes: Batched<string, View>
  readonly #extents: Batched<string, Extent>
  readonly #takes: Batched<object, Outcome>
  readonly #leaves: Batched<object, Outcome>

  constructor(gateway: Gateway, keys: Keys) {
    this.#beats = new Batched(MOST_BEATS, async (leases, limit) => {
      const body = leases.map(ID => JSON.stringify({ ID })).join('\n')
      const answers = await gateway.call<LeaseAnswer>('lease/keepalive', body, limit)
      const byLease = new Map(answers.map(answer => [answer.ID, answer]))
      return leases.map(lease => {
        const answer = byLease.get(lease)
        return answer && { ttl: Number(answer.TTL ?? 0) * 1_000, term: termOf(answer.header) }
      })
    })
    this.#sights = new Batched(MOST_READS, async (wanted, limit) => {
      const { header, responses = [] } = await gateway.txn({ success: wanted.map(readOf) }, limit)
      const term = termOf(header)
      return responses.map(({ response_range }) => ({ found: response_range?.kvs?.[0], term }))
    })
    this.#views = new Batched(MOST_READS, async (names, limit) => {
      const success = names.flatMap(name => firstOf(keys, name))
      const { header, responses = [] } = await gateway.txn({ success }, limit)
      return names.map((_, index) => {
        const [holders, waiters] = responses.slice(2 * index)
        return viewOf(holders?.response_range ?? {}, waiters?.response_range ?? {}, header.revision)
      })
    })
    this.#wholes = new Batched(MOST_WHOLE, async (names, limit) => {
      const success = names.map(name => ({ request_range: keys.all(name) }))
      const { header, responses = [] } = await gateway.txn({ success }, limit)
      return responses.map(({ response_range = {} }) => wholeOf(keys, response_range, header.revision))
    })
    this.#extents = new Batched(MOST_READS, async (names, limit) => {
      const newest = { sort_order: 'DESCEND', sort_target: 'MOD', limit: '1', keys_only: true }
      const success = names.map(name => ({ request_range: { ...keys.all(name), ...newest } }))
      const { responses = [] } = await gateway.txn({ success }, limit)
      return responses.map(({ response_range: { kvs = [], count = '0' } = {} }) => {
        return { count: Number(count), written: BigInt(kvs[0]?.mod_revision ?? '0') }
      })
    })
    ;[this.#takes, this.#leaves] = [transactions(gateway), transactions(gateway)]
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

  /**
   * Reads all holders and waiters. The read is linearizable. Waiters of one name that ask at once share it: after an outage
   * each of a thousand would read a thousand.
   */
  whole(name: string, limit: number): Promise<View> {
    return this.#wholes.ask(name, limit)
  }

  /** Reads how many keys a name has. The read is linearizable. */
  extent(name: string, limit: number): Promise<Extent> {
    return this.#extents.ask(name, limit)
  }

  /** Sends `takeIfUnused`. */
  take(txn: object, limit: number, signal: AbortSignal): Promise<Outcome> {
    return this.#takes.ask(txn, limit, signal)
  }

  /** Sends `leave`. */
  leave(txn: object, limit: number, signal: AbortSignal): Promise<Outcome> {
    return this.#leaves.ask(txn, limit, signal)
  }
}

/** Joins independent transactions, of which each key is in one. */
function transactions(gateway: Gateway): Batched<object, Outcome> {
  return new Batched(MOST_TXNS, async (txns, limit, wasRepeated) => {
    const [alone = {}, ...others] = txns
    const txn = others.length === 0 ? alone : { success: txns.map(request_txn => ({ request_txn })) }
    const answer = await gateway.txn(txn, limit)
    const { header, responses } = answer
    const isRepeated = wasRepeated || answer.isRepeated
    return txns.map((_, index) => {
      return outcomeOf({ ...(txn === alone ? answer : responses?.[index]?.response_txn), header, isRepeated })
    })
  })
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
