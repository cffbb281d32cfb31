import { randomUUID } from 'node:crypto'
import type { LeaseError } from '../../contract/errors.ts'
import type { Claim, ClaimKey, Wake } from '../../contract/store.ts'
import { LONGEST_REQUEST, requestLimit } from '../../contract/time.ts'
import type { Answer, Broken, Member, Renewal, Sight, Vote } from '../quorum/member.ts'
import type { Driver, Link } from '../redis/client.ts'
import { Connection } from '../redis/connection.ts'
import { warnOfEviction } from '../redis/eviction.ts'
import { Keys } from '../redis/keys.ts'
import { namesFrom } from '../redis/names.ts'
import { detailsOf, read } from '../redis/record.ts'
import { type Question, Requests, TooLate } from '../redis/requests.ts'
import { MEMORY } from '../redis/script.ts'
import type { Preamble } from '../redis/session.ts'
import { wakesOf } from '../redis/wakes.ts'
import type { Wakes } from '../shared/wakes.ts'
import { type Identities, identityOf } from './identity.ts'
import { PAGE, script } from './script.ts'

/** What a withdrawal says of a claim that is unknown: for how long it is refused. */
const FORGET = `${LONGEST_REQUEST} 0 0 `

/** Of a note that a node is given again. Notes that were changed since are later, and that which got the vote is earlier. */
const RESTORED = 1

/** Nobody calls a request to a node off: what is sent is sent, and the majority decides. */
const never = new AbortController().signal

export interface RedisMemberOptions {
  readonly name: string
  readonly prefix: string
  /** Milliseconds for which a server that may have forgotten leases gives none; 0: it may be trusted. */
  readonly maxTtl: number
  /** Milliseconds that it may take to acquire for a ttl. */
  readonly acquireLimit: (ttl: number) => number
  readonly identities: Identities
}

/** One Redis server of a quorum. */
export class RedisMember implements Member {
  readonly name: string
  readonly #options: RedisMemberOptions
  readonly #channel: string
  readonly #keys: Keys
  readonly #connection: Connection
  readonly #requests: Requests
  readonly #wakes: Wakes

  constructor(driver: Driver, options: RedisMemberOptions) {
    this.name = options.name
    this.#options = options
    this.#keys = new Keys(`${driver.keyPrefix}${options.prefix}:redlock`)
    this.#channel = driver.canListen ? this.#keys.channel(randomUUID()) : '-'
    const dialect = { script, greet: (link: Link, now: number) => this.#greet(link, now) }
    this.#connection = new Connection(driver, dialect, link => void warnOfEviction(link))
    this.#requests = new Requests(this.#connection, false)
    this.#wakes = wakesOf(driver, this.#channel)
  }

  vote(claim: Claim, attempt: number): Promise<Answer<Vote | undefined>> {
    const { name, id, ttl, queue } = claim
    const ears = this.#wakes.ears
    const wishes = `${ttl} ${ttl + MEMORY} ${queue ? 1 : 0} ${attempt} ${detailsOf(claim)}`
    const read = (text: string): Vote | undefined => voteOf(text, ears !== undefined && ears === this.#wakes.ears)
    return this.#ask({ name, id, verb: 'vote', wishes }, read, this.#options.acquireLimit(ttl))
  }

  commit({ name, id, ttl }: Claim, seen: number, token: number): Promise<Answer<boolean>> {
    const wishes = `${ttl} ${ttl + MEMORY} 0 ${seen} ${token}`
    return this.#ask({ name, id, verb: 'commit', wishes }, isDone, this.#options.acquireLimit(ttl))
  }

  renew(claim: Claim, restore: boolean): Promise<Answer<Renewal>> {
    const { name, ttl } = claim
    const wishes = `${ttl} ${ttl + MEMORY} ${restore ? `1 ${detailsOf(claim, RESTORED)}` : '0 '}`
    return this.#ask({ name, id: withToken(claim), verb: 'renew', wishes }, renewalOf, requestLimit(ttl))
  }

  annotate(claim: Claim, revision: number): Promise<Answer<Renewal>> {
    const { name, ttl } = claim
    const wishes = `0 0 0 ${detailsOf(claim, revision)}`
    return this.#ask({ name, id: withToken(claim), verb: 'annotate', wishes }, renewalOf, requestLimit(ttl))
  }

  release(key: ClaimKey): Promise<Answer<boolean>> {
    return this.#ask({ name: key.name, id: withToken(key), verb: 'release', wishes: FORGET }, isDone)
  }

  concede({ name, id }: ClaimKey, attempt: number): Promise<Answer<boolean>> {
    return this.#ask({ name, id, verb: 'concede', wishes: FORGET + attempt }, isDone)
  }

  break(name: string, floor: number): Promise<Answer<Broken>> {
    const wishes = `0 0 0 ${floor}`
    return this.#ask({ name, id: '-', verb: 'break', wishes }, brokenOf, LONGEST_REQUEST)
  }

  raise(name: string, token: number): Promise<Answer<boolean>> {
    return this.#ask({ name, id: '-', verb: 'raise', wishes: `0 0 0 ${token}` }, isDone, LONGEST_REQUEST)
  }

  look(name: string, from: number): Promise<Answer<Sight>> {
    return this.#ask({ name, id: '-', verb: 'look', wishes: `0 0 0 ${from}` }, sightOf)
  }

  async names(prefix: string): Promise<Answer<readonly string[]>> {
    return { value: await namesFrom(this.#connection, this.#keys, prefix, never), votesIn: undefined }
  }

  watch({ id }: ClaimKey, wake: Wake, signal: AbortSignal): Promise<void> {
    return this.#wakes.watch(id, wake, signal)
  }

  isAnswer(failure: LeaseError): boolean {
    // What is wrong with one name (its format, its tokens) is nothing that others should wait for.
    return failure instanceof TooLate || (failure.code === 'STORE_UNAVAILABLE' && !failure.retryable)
  }

  close(): void {
    this.#connection.close()
    this.#wakes.close()
  }

  /** `limit`: milliseconds after which the server refuses it. @default never */
  #ask<Value>(
    { name, id, verb, wishes }: Omit<Question, 'key'> & { readonly name: string },
    read: (answer: string, parts: readonly unknown[]) => Value,
    limit?: number,
  ): Promise<Answer<Value>> {
    const question = { key: this.#keys.lease(name), id, verb, wishes }
    return this.#requests.put(question, { limit, signal: never }).then(({ value, state }) => {
      const parts = Array.isArray(value) ? value : []
      return { value: read(String(value), parts), votesIn: Number(state) }
    })
  }

  /** A server cannot restart under a connection that never connects again, so that this holds as long as that does. */
  async #greet(link: Link, now: number): Promise<Preamble> {
    const { maxTtl, identities } = this.#options
    const asked = performance.now()
    const [server, replication] = await Promise.all([link.call(['INFO', 'server']), link.call(['INFO', 'replication'])])
    const identity = identityOf(`${server}\n${replication}`)
    identities.admit(this, identity)
    // The uptime is of a later moment than `now`.
    const startedAt = Math.ceil(now + performance.now() - asked) - identity.uptime * 1_000
    return {
      keys: [`${this.#keys.prefix}:since`],
      args: [this.#channel, '0', identity.runId, String(startedAt), String(maxTtl)],
    }
  }
}

/** The id, and what the claim was granted. */
function withToken({ id, token = 0n }: ClaimKey): string {
  return id + token.toString().padStart(16, '0')
}

function voteOf(text: string, listens: boolean): Vote | undefined {
  if (text.startsWith('+')) return { kind: 'granted', token: Number(text) }
  if (text === 'x') return { kind: 'withdrawn' }
  if (text === 'q') return undefined
  const [remaining = '', ahead = '', id = '', token = ''] = text.slice(1).split(' ', 4)
  const holder = { id, token: Number(token), remaining: Number(remaining), ...read(text, 4) }
  return { kind: 'busy', holder, ahead: Number(ahead), listens }
}

function isDone(text: string): boolean {
  return text === '1'
}

function renewalOf(text: string): Renewal {
  if (text.startsWith('+')) return { state: 'held', token: Number(text) }
  return { state: text === 'f' ? 'free' : 'lost', token: 0 }
}

function brokenOf(text: string): Broken {
  return { wasHeld: text.startsWith('+'), token: Number(text.slice(1)) }
}

/** `remaining id token details`, then of each waiter `remaining id` and `channel asked details`. */
function sightOf(_: string, parts: readonly unknown[]): Sight {
  const [lease = '', ...line] = parts.map(String)
  const [remaining = '', id = '', token = ''] = lease.split(' ', 3)
  const holder = lease ? { id, token: Number(token), remaining: Number(remaining), ...read(lease, 3) } : undefined
  const waiters: Sight['line'][number][] = []
  for (let index = 0; index < line.length; index += 2) {
    const [lapses = '', waiter = ''] = (line[index] ?? '').split(' ')
    waiters.push({ id: waiter, remaining: Number(lapses), ...read(line[index + 1] ?? '', 2) })
  }
  return { holder, line: waiters, hasMore: waiters.length === PAGE }
}
