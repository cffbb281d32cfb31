import { randomUUID } from 'node:crypto'
import type { Claim, ClaimKey, Wake } from '../../store.ts'
import { LONGEST_REQUEST, requestLimit } from '../../time.ts'
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
import { Wakes } from '../redis/wakes.ts'
import { type Identities, identityOf } from './identity.ts'
import { script } from './script.ts'

/** What a withdrawal says of a claim that is unknown: for how long it is refused. */
const FORGET = `${LONGEST_REQUEST} 0 0 `

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
    this.#wakes = new Wakes(driver, this.#channel)
  }

  async vote(claim: Claim, attempt: number): Promise<Answer<Vote | undefined>> {
    const { name, id, ttl, queue } = claim
    const ears = this.#wakes.ears
    const wishes = `${ttl} ${ttl + MEMORY} ${queue ? 1 : 0} ${attempt} ${detailsOf(claim)}`
    const { text, votesIn } = await this.#ask(
      { key: this.#keys.lease(name), id, verb: 'vote', wishes },
      this.#options.acquireLimit(ttl),
    )
    return { value: voteOf(text, ears !== undefined && ears === this.#wakes.ears), votesIn }
  }

  async commit({ name, id, ttl }: Claim, seen: number, token: number): Promise<Answer<boolean>> {
    const wishes = `${ttl} ${ttl + MEMORY} 0 ${seen} ${token}`
    const { text, votesIn } = await this.#ask(
      { key: this.#keys.lease(name), id, verb: 'commit', wishes },
      this.#options.acquireLimit(ttl),
    )
    return { value: text === '1', votesIn }
  }

  async renew(claim: Claim, restore: boolean): Promise<Answer<Renewal>> {
    const { name, ttl } = claim
    const wishes = `${ttl} ${ttl + MEMORY} ${restore ? `1 ${detailsOf(claim)}` : '0 '}`
    const question = { key: this.#keys.lease(name), id: withToken(claim), verb: 'renew', wishes }
    const { text, votesIn } = await this.#ask(question, requestLimit(ttl))
    if (text.startsWith('+')) return { value: { state: 'held', token: Number(text) }, votesIn }
    return { value: { state: text === 'f' ? 'free' : 'lost', token: 0 }, votesIn }
  }

  async release(key: ClaimKey): Promise<Answer<boolean>> {
    const question = { key: this.#keys.lease(key.name), id: withToken(key), verb: 'release', wishes: FORGET }
    const { text, votesIn } = await this.#ask(question)
    return { value: text === '1', votesIn }
  }

  async concede({ name, id }: ClaimKey, attempt: number): Promise<Answer<boolean>> {
    const question = { key: this.#keys.lease(name), id, verb: 'concede', wishes: FORGET + attempt }
    const { text, votesIn } = await this.#ask(question)
    return { value: text === '1', votesIn }
  }

  async break(name: string, by: string, floor: number): Promise<Answer<Broken>> {
    const wishes = `${MEMORY} 0 0 ${floor} ${by}`
    const { text, votesIn } = await this.#ask(
      { key: this.#keys.lease(name), id: '-', verb: 'break', wishes },
      LONGEST_REQUEST,
    )
    return { value: { wasHeld: text.startsWith('+'), token: Number(text.slice(1)) }, votesIn }
  }

  async raise(name: string, token: number): Promise<Answer<boolean>> {
    const question = { key: this.#keys.lease(name), id: '-', verb: 'raise', wishes: `0 0 0 ${token}` }
    const { text, votesIn } = await this.#ask(question, LONGEST_REQUEST)
    return { value: text === '1', votesIn }
  }

  async look(name: string): Promise<Answer<Sight>> {
    const question = { key: this.#keys.lease(name), id: '-', verb: 'look', wishes: '0 0 0 ' }
    const { value, state } = await this.#requests.put(question, { signal: never })
    return { value: sightOf((value as unknown[]).map(String)), votesIn: Number(state) }
  }

  async names(prefix: string): Promise<Answer<readonly string[]>> {
    return { value: await namesFrom(this.#connection, this.#keys, prefix, never), votesIn: 0 }
  }

  watch({ id }: ClaimKey, wake: Wake, signal: AbortSignal): Promise<void> {
    return this.#wakes.watch(id, wake, signal)
  }

  isAnswer(failure: unknown): boolean {
    return failure instanceof TooLate
  }

  close(): void {
    this.#connection.close()
    this.#wakes.close()
  }

  /** `limit`: milliseconds after which the server refuses it. @default never */
  async #ask(question: Question, limit?: number): Promise<{ text: string; votesIn: number }> {
    const { value, state } = await this.#requests.put(question, { limit, signal: never })
    return { text: String(value), votesIn: Number(state) }
  }

  /** A server cannot restart under a connection, so that this holds as long as that does. */
  async #greet(link: Link, now: number): Promise<Preamble> {
    const { maxTtl, identities } = this.#options
    const [server, replication] = await Promise.all([link.call(['INFO', 'server']), link.call(['INFO', 'replication'])])
    const identity = identityOf(`${server}\n${replication}`)
    identities.admit(this, identity)
    const startedAt = now - identity.uptime * 1_000
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

/** `remaining id token details`, then of each waiter `remaining id` and `channel asked details`. */
function sightOf([lease = '', ...line]: string[]): Sight {
  const [remaining = '', id = '', token = ''] = lease.split(' ', 3)
  const holder = lease ? { id, token: Number(token), remaining: Number(remaining), ...read(lease, 3) } : undefined
  const waiters: Omit<NonNullable<Sight['holder']>, 'token'>[] = []
  for (let index = 0; index < line.length; index += 2) {
    const [lapses = '', waiter = ''] = (line[index] ?? '').split(' ')
    waiters.push({ id: waiter, remaining: Number(lapses), ...read(line[index + 1] ?? '', 2) })
  }
  return { holder, line: waiters }
}
