import { LeaseError } from '../../src/index.ts'
import type { RedisClient } from '../../src/stores/redis/index.ts'

/** A client of ioredis or iovalkey, as the old libraries need it. */
interface OldClient {
  eval(script: string, keys: number, key: string, ...args: (string | number)[]): Promise<unknown>
}

/** Another process holds the key, for another `remaining` ms unless it extends that. */
export interface Foreign {
  readonly remaining: number
}

/** What one server answers: a vote for or against, or none; and for how long another process holds the key. */
type Vote = readonly ['for' | 'against' | 'none', remaining: number]

const VOTES = { 1: 'for', 0: 'against' } as const
const FOREVER = 2 ** 31 - 1

/** A server that was just started may have forgotten keys. Zero: that does not matter. */
const SERVES = `
local least = tonumber(ARGV[3])
if least > 0 and tonumber(string.match(redis.call('info', 'server'), 'uptime_in_seconds:(%d+)')) * 1000 < least then
  return {-1, 0}
end
`
const MINE = `
local mine = redis.pcall('get', KEYS[1]) == ARGV[1]
`
const AGAINST = `
return {0, redis.call('pttl', KEYS[1])}
`
// A copy of an earlier request may arrive late, after a longer extension, so nothing is ever shortened.
const LENGTHEN = `
if mine then
  if redis.call('pttl', KEYS[1]) < tonumber(ARGV[2]) then redis.call('pexpire', KEYS[1], ARGV[2]) end
  return {1, 0}
end
`
const ACQUIRE = `${MINE}${SERVES}${LENGTHEN}
if redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then return {1, 0} end
${AGAINST}`
const EXTEND = `${MINE}${LENGTHEN}${AGAINST}`
const RELEASE = `${MINE}
if mine then redis.call('del', KEYS[1]) end
return {1, 0}
`
const LOOK = `
if redis.call('exists', KEYS[1]) == 1 then ${AGAINST} end
${SERVES}
return {1, 0}
`

/** The keys that hold the locks of the old libraries, on one server or on a majority of several. */
export class OldLocks {
  readonly #clients: readonly OldClient[]
  readonly #quarantine: number

  /** `quarantine`: milliseconds for which a server that was started does not vote. */
  constructor(clients: readonly RedisClient[], quarantine: number) {
    this.#clients = clients as readonly unknown[] as OldClient[]
    this.#quarantine = clients.length > 1 ? quarantine : 0
  }

  /** Can locks of the old libraries be taken with this client? */
  static supports(client: RedisClient): boolean {
    return 'call' in client && 'eval' in client && 'duplicate' in client
  }

  /** Sets the key for `ttl` ms, unless another process holds it. Then nothing is left of it. */
  async acquire(key: string, value: string, ttl: number, signal: AbortSignal): Promise<Foreign | undefined> {
    const foreign = await this.#ask(ACQUIRE, key, [value, ttl, this.#quarantine], signal)
    if (foreign && this.#clients.length > 1) await this.release(key, value, signal)
    return foreign
  }

  /** The key lasts at least `ttl` ms from now, if it still has the value. A key that is missing is never set again. */
  extend(key: string, value: string, ttl: number, signal: AbortSignal): Promise<Foreign | undefined> {
    return this.#ask(EXTEND, key, [value, ttl], signal)
  }

  /** Deletes the key if it has the value. A server that does not answer gets the request later, or lets the key expire. */
  async release(key: string, value: string, signal: AbortSignal): Promise<void> {
    await this.#ask(RELEASE, key, [value], signal)
  }

  /** Does a process hold the key? */
  look(key: string, signal: AbortSignal): Promise<Foreign | undefined> {
    return this.#ask(LOOK, key, ['', 0, this.#quarantine], signal)
  }

  /** Resolves once a majority voted for it, or cannot any more. Rejects if too few voted. */
  #ask(
    script: string,
    key: string,
    args: readonly (string | number)[],
    signal: AbortSignal,
  ): Promise<Foreign | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<Foreign | undefined>()
    const give = (): void => reject(signal.reason as Error)
    if (signal.aborted) give()
    signal.addEventListener('abort', give, { once: true })
    const needed = Math.floor(this.#clients.length / 2) + 1
    const votes: Vote[] = []
    const failures: Error[] = []
    const count = (vote: Vote): void => {
      votes.push(vote)
      const no = votes.filter(([kind]) => kind === 'against')
      if (no.length > this.#clients.length - needed)
        resolve({ remaining: Math.max(...no.map(([, remaining]) => remaining)) })
      else if (votes.filter(([kind]) => kind === 'for').length >= needed) resolve(undefined)
      else if (votes.length === this.#clients.length) reject(tooFew(key, this.#clients.length, failures))
    }
    for (const client of this.#clients)
      void (signal.aborted ? Promise.reject(signal.reason) : client.eval(script, 1, key, ...args)).then(
        answer => count(voteOf(answer)),
        (error: Error) => {
          failures.push(error)
          count(['none', 0])
        },
      )
    return promise.finally(() => signal.removeEventListener('abort', give))
  }
}

function voteOf(answer: unknown): Vote {
  const [kind, remaining] = (answer as (string | number)[]).map(Number) as [number, number]
  return [VOTES[kind as 0 | 1] ?? 'none', remaining === -1 ? FOREVER : Math.max(remaining, 0)]
}

function tooFew(key: string, servers: number, failures: readonly Error[]): LeaseError {
  const [cause] = failures
  const reason = cause?.message ?? 'they were started less than maxTtl ago and may have forgotten locks'
  const who = servers > 1 ? 'too few servers answered' : 'the server did not answer'
  return new LeaseError(
    'STORE_UNAVAILABLE',
    `${who} for the key ${JSON.stringify(key)} of the old library: ${reason}`,
    {
      cause,
    },
  )
}
