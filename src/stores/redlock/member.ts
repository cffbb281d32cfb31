import type { LeaseError } from '../../contract/errors.ts'
import { randomId } from '../../contract/random-id.ts'
import type { Claim, ClaimKey, Wake } from '../../contract/store.ts'
import { LONGEST_REQUEST, requestLimit, systemClock } from '../../contract/time.ts'
import type { Answer, Broken, Claims, Member, Renewal, Sight, Vote } from '../quorum/member.ts'
import type { RedisDriver, Wire } from '../redis/client.ts'
import type { Preamble } from '../redis/connection.ts'
import { search } from '../redis/inspection.ts'
import { Keys } from '../redis/keys.ts'
import { notificationsOf } from '../redis/notifications.ts'
import { detailsOf, read } from '../redis/record.ts'
import { Requests, type ScriptRequest } from '../redis/requests.ts'
import { FORGET, MEMORY } from '../redis/script.ts'
import { StaleRequest } from '../wire/batched-requests.ts'
import type { Notifications } from '../wire/notifications.ts'
import { NEVER } from '../wire/timeouts.ts'
import { type Identities, identityOf } from './identity.ts'
import { PAGE, script } from './script.ts'

/** The revision of a restored note: above that of the vote, and below those of later changes. */
const RESTORED = 1

/**
 * Is added to the number of a renewal, which makes it higher than every attempt. A renewed vote is part of a lease, and the late
 * withdrawal of an attempt must not free it.
 */
const RENEWED = 2 ** 52

export interface RedisMemberOptions {
  readonly name: string
  readonly prefix: string
  /** Milliseconds for which a server that may have lost leases grants none. 0: it is trusted. */
  readonly maxTtl: number
  /** The share of the ttl that an acquire may take. */
  readonly acquireShare: number
  readonly identities: Identities
}

/** One Redis server of a quorum. */
export class RedisMember implements Member {
  readonly name: string
  readonly #options: RedisMemberOptions
  readonly #channel: string
  readonly #keys: Keys
  readonly #requests: Requests
  readonly #notifications: Notifications

  constructor(driver: RedisDriver, options: RedisMemberOptions) {
    this.name = options.name
    this.#options = options
    this.#keys = new Keys(`${driver.keyPrefix}${options.prefix}:redlock`)
    this.#channel = driver.canListen ? this.#keys.channel(randomId()) : '-'
    this.#requests = new Requests(driver, {
      script,
      prepare: (wire, now) => this.#prepare(wire, now),
      notified: message => this.#notifications.notify(message),
      replaced: () => this.#notifications.move(),
    })
    this.#notifications = notificationsOf(systemClock(), driver, this.#channel)
  }

  vote(claim: Claim, attempt: number): Promise<Answer<Vote | undefined>> {
    const { name, id, ttl, queue } = claim
    const { subscription } = this.#notifications
    const parameters = `${ttl} ${ttl + MEMORY} ${queue ? 1 : 0} ${attempt} ${detailsOf(claim)}`
    const read = (text: string): Vote | undefined => voteOf(text, this.#notifications.covers(subscription))
    return this.#ask({ name, id, verb: 'vote', parameters }, read, requestLimit(ttl, this.#options.acquireShare))
  }

  commit({ name, id, ttl }: Claim, attempt: number, seen: number, token: number): Promise<Answer<boolean>> {
    const parameters = `${ttl} ${ttl + MEMORY} 0 ${attempt} ${seen} ${token}`
    return this.#ask({ name, id, verb: 'commit', parameters }, isDone, requestLimit(ttl, this.#options.acquireShare))
  }

  renew(claim: Claim, restore: boolean, number: number): Promise<Answer<Renewal>> {
    const { name, ttl } = claim
    const attempt = `${restore ? 1 : 0} ${RENEWED + number}`
    const parameters = `${ttl} ${ttl + MEMORY} ${attempt} ${restore ? detailsOf(claim, RESTORED) : ''}`
    return this.#ask({ name, id: withToken(claim), verb: 'renew', parameters }, renewalOf, requestLimit(ttl))
  }

  annotate(claim: Claim, revision: number): Promise<Answer<Renewal>> {
    const { name, ttl } = claim
    const parameters = `0 0 0 ${detailsOf(claim, revision)}`
    return this.#ask({ name, id: withToken(claim), verb: 'annotate', parameters }, renewalOf, requestLimit(ttl))
  }

  release(key: ClaimKey): Promise<Answer<boolean>> {
    return this.#ask({ name: key.name, id: withToken(key), verb: 'release', parameters: FORGET }, isDone)
  }

  concede({ name, id }: ClaimKey, attempt: number, wakes: boolean): Promise<Answer<boolean>> {
    const parameters = `${LONGEST_REQUEST} 0 ${wakes ? 1 : 0} ${attempt}`
    return this.#ask({ name, id, verb: 'concede', parameters }, isDone)
  }

  break(name: string, claims: Claims, token: number): Promise<Answer<Broken>> {
    const parameters = `0 0 0 ${token} ${[...claims].flat().join(' ')}`
    return this.#ask({ name, id: '-', verb: 'break', parameters }, brokenOf, LONGEST_REQUEST)
  }

  look(name: string, from?: number): Promise<Answer<Sight>> {
    return this.#ask({ name, id: '-', verb: 'look', parameters: `0 0 0 ${from ?? '-'}` }, sightOf)
  }

  names(prefix: string): AsyncIterator<readonly string[], void> {
    return search(this.#requests, this.#keys, prefix, NEVER)
  }

  watch({ id }: ClaimKey, wake: Wake, signal: AbortSignal): Promise<void> {
    return this.#notifications.watch(id, wake, signal)
  }

  isAnswer(failure: LeaseError): boolean {
    // An error of one name, such as one in its format or its tokens, does not concern other names. An error of the server
    // has its text as a cause.
    const { code, retryable, cause } = failure
    return (
      failure instanceof StaleRequest ||
      code === 'FORMAT_MISMATCH' ||
      (code === 'STORE_UNAVAILABLE' && !retryable && !cause)
    )
  }

  close(): void {
    this.#requests.close()
    this.#notifications.close()
  }

  /**
   * Sends a request. `limit`: milliseconds after which the server refuses it. @default never. It has no signal: the majority
   * decides.
   */
  #ask<Value>(
    { name, id, verb, parameters }: Omit<ScriptRequest, 'key' | 'limit'> & { readonly name: string },
    read: (answer: string, parts: readonly unknown[]) => Value,
    limit?: number,
  ): Promise<Answer<Value>> {
    const request = { verb, key: this.#keys.lease(name), id, parameters, limit }
    return this.#requests.put(request, NEVER, (answer, _, state) => {
      const parts = Array.isArray(answer) ? answer : []
      return { value: read(String(answer), parts), votesIn: Number(state) }
    })
  }

  /**
   * Prepares a connection. It never reconnects, and a server cannot restart under it. So the result is valid as long as the
   * connection.
   */
  async #prepare(wire: Wire, now: number): Promise<Preamble> {
    const { maxTtl, identities } = this.#options
    const asked = performance.now()
    const [server, replication] = await Promise.all([wire.call(['INFO', 'server']), wire.call(['INFO', 'replication'])])
    const identity = identityOf(`${server}\n${replication}`)
    identities.admit(this, identity)
    // The uptime was read after `now`.
    const startedAt = Math.ceil(now + performance.now() - asked) - identity.uptime * 1_000
    return {
      keys: [`${this.#keys.prefix}:since`],
      args: () => [this.#channel, '0', identity.runId, String(startedAt), String(maxTtl)],
    }
  }
}

/** The id of the claim, and the token that it was granted. */
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
  return { hasEnded: text.startsWith('+'), isRaised: !text.startsWith('-'), token: Number(text.slice(1)) }
}

/** Parses `remaining id token details`, and then for each waiter `remaining id` and `channel asked 0 details`. */
function sightOf(_: string, parts: readonly unknown[]): Sight {
  const [lease = '', ...queue] = parts.map(String)
  const [remaining = '', id = '', token = ''] = lease.split(' ', 3)
  const holder = lease ? { id, token: Number(token), remaining: Number(remaining), ...read(lease, 3) } : undefined
  const waiters: Sight['queue'][number][] = []
  for (let index = 0; index < queue.length; index += 2) {
    const [lapses = '', waiter = ''] = (queue[index] ?? '').split(' ')
    waiters.push({ id: waiter, remaining: Number(lapses), ...read(queue[index + 1] ?? '', 3) })
  }
  return { holder, queue: waiters, hasMore: waiters.length === PAGE }
}
