import { LeaseError } from '../../contract/errors.ts'
import type { Grant } from '../../contract/store.ts'
import type { Gateway } from './gateway.ts'
import type { Keys } from './keys.ts'
import type { Header, KeyValue, LeaseAnswer } from './messages.ts'

/** What a keepalive says: the ttl in ms, 0 if there is no such lease, and the term of the leader that renewed it. */
export interface Beat {
  readonly ttl: number
  readonly term: number
}

/** What is at a key, and the term in which a majority confirmed it. */
export interface Sight {
  readonly found: KeyValue | undefined
  readonly term: number
}

/** Who holds a name, and how many are in its line. */
export interface Survey {
  readonly held: KeyValue | undefined
  readonly waiting: number
}

/**
 * In 512 bytes. Go's HTTP/1.1 server throws away what it has not read of a request when the answer begins, and the
 * gateway has read no more than that by then: of 32 keepalives in one request some were lost. Each also takes a server
 * that does not lead a round trip to the leader, one after the other.
 */
const MOST_BEATS = 16

/** etcd takes 128 operations in one transaction unless told otherwise. */
const MOST_READS = 60

/** What many claims ask for in one turn of the event loop, in few requests. */
export class Shared {
  readonly #beats: Joined<Beat>
  readonly #sights: Joined<Sight>
  readonly #surveys: Joined<Survey>

  constructor(gateway: Gateway, keys: Keys) {
    this.#beats = new Joined(MOST_BEATS, async (leases, limit) => {
      const body = leases.map(ID => JSON.stringify({ ID })).join('\n')
      const answers = await gateway.call<LeaseAnswer>('lease/keepalive', body, limit)
      return new Map(answers.map(({ header, ID, TTL = 0 }) => [ID, { ttl: Number(TTL) * 1_000, term: termOf(header) }]))
    })
    this.#sights = new Joined(MOST_READS, async (wanted, limit) => {
      const { header, responses = [] } = await gateway.txn({ success: wanted.map(readOf) }, limit)
      const term = termOf(header)
      return new Map(wanted.map((key, index) => [key, { found: responses[index]?.response_range?.kvs?.[0], term }]))
    })
    this.#surveys = new Joined(MOST_READS, async (names, limit) => {
      const line = (name: string): object => ({ request_range: { ...keys.line(name), count_only: true } })
      const success = names.flatMap(name => [readOf(keys.held(name)), line(name)])
      const { responses = [] } = await gateway.txn({ success }, limit)
      const answers = responses.map(({ response_range = {} }) => response_range)
      return new Map(
        names.map((name, index) => {
          const [held, waiting] = answers.slice(2 * index)
          return [name, { held: held?.kvs?.[0], waiting: Number(waiting?.count ?? 0) }]
        }),
      )
    })
  }

  /** Renews a lease for its ttl. */
  keepAlive(lease: string, limit: number): Promise<Beat> {
    return this.#beats.ask(lease, limit)
  }

  /** Linearizable. */
  look(key: string, limit: number): Promise<Sight> {
    return this.#sights.ask(key, limit)
  }

  /** Linearizable. */
  survey(name: string, limit: number): Promise<Survey> {
    return this.#surveys.ask(name, limit)
  }
}

function readOf(key: string): object {
  return { request_range: { key } }
}

export function termOf(header: Header): number {
  return Number(header.raft_term)
}

/** The lease as it was granted, if what renewed it was the leader of the term in which a majority confirmed who holds. */
export function granted(revision: string, { ttl, term }: Beat, confirmed: number): Grant {
  if (ttl === 0) throw vanished()
  if (term >= confirmed) return { held: true, token: BigInt(revision), ttl }
  const message = 'the leader of the etcd cluster changed, and what the old one answered is void: it is asked again'
  throw new LeaseError('OUTCOME_UNKNOWN', message)
}

/** The outcome is to be asked for again. */
export function vanished(): LeaseError {
  return new LeaseError('OUTCOME_UNKNOWN', 'the lease of the claim came or went while it was asked about')
}

interface Asked<Answer> {
  readonly limit: number
  readonly promise: Promise<Answer>
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/** Joins the questions of one turn of the event loop. Those for the same share their answer. */
class Joined<Answer> {
  readonly #most: number
  readonly #send: (keys: string[], limit: number) => Promise<Map<string, Answer>>
  #waiting = new Map<string, Asked<Answer>>()

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
    return asked.promise
  }

  #flush(): void {
    const waiting = [...this.#waiting]
    this.#waiting = new Map()
    while (waiting.length > 0) void this.#carryOut(waiting.splice(0, this.#most))
  }

  async #carryOut(all: readonly [string, Asked<Answer>][]): Promise<void> {
    try {
      const limit = Math.min(...all.map(([, asked]) => asked.limit))
      const answers = await this.#send(
        all.map(([key]) => key),
        limit,
      )
      for (const [key, asked] of all) {
        const answer = answers.get(key)
        if (answer) asked.resolve(answer)
        else if (all.length > 1) void this.#carryOut([[key, asked]])
        else asked.reject(new LeaseError('OUTCOME_UNKNOWN', 'etcd answered a part of what it was asked'))
      }
    } catch (error) {
      for (const [, asked] of all) asked.reject(error)
    }
  }
}
