import { GONE, type Program, programOf } from './script.ts'

const clock = `local call, match, sub, format = redis.call, string.match, string.sub, string.format
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`

/**
 * Acquires a free name for a claim of one unit. If it cannot decide, it answers nothing and has written nothing. That is so
 * if the name has a value of any type, the claim has a tombstone, the counter is missing or used up, or the request is
 * late. `SET` is the first write, because a server that is out of memory refuses the first write.
 */
export const acquireAlone: Program = programOf(`${clock}local found = call('MGET', KEYS[1], KEYS[2], KEYS[3])
local highest = tonumber(found[3] or '')
if found[1] or found[2] or not highest or highest >= 9007199254740991 or now > tonumber(ARGV[1]) then return '' end
local ttl, life, rest = match(ARGV[2], '^(%d+) (%d+) %d+ (.*)$')
local token, ends, share, answer = format('%.0f', math.max(time[1] * 1000000 + time[2], highest + 1)), now + ttl, '', ''
if sub(rest, 1, 1) ~= '[' then
  local limit, details = match(rest, '^(%d+) 1 (.*)$')
  if not limit then return '' end
  share, rest, answer = '/' .. limit .. '/1', details, format(' 0 %.0f', ends)
end
local value = format('1 %013.0f held 0 %s %s%s %s %s', ends, token, ttl, share, ARGV[3], rest)
if not (redis.pcall('SET', KEYS[1], value, 'NX', 'PX', life) or {}).ok then return '' end
call('SET', KEYS[3], token)
return now .. '\\n+' .. token .. answer
`)

/**
 * Releases a lease that its claim holds alone and that has no waiters. If it cannot decide, it answers nothing. That is
 * also so if the token is above the counter, because then the name must be remembered.
 */
export const releaseAlone: Program = programOf(`${clock}local found = call('MGET', KEYS[1], KEYS[2])
local value, highest = found[1] or '', tonumber(found[2] or '')
local ends, token, most, start = match(value, '^1 (%d+) held 0 (%d+) (%d+)[^ ]* ()')
local left = (ends or 0) - now
if not highest or left <= 0 or left > tonumber(most) or tonumber(token) > highest then return '' end
if sub(value, start, start + #ARGV[1]) ~= ARGV[1] .. ' ' then return '' end
call('PEXPIRE', KEYS[1], 0)
return now .. '\\n1'
`)

/** Milliseconds for which a name that was busy still counts as busy. */
const LATELY = 10_000

/** The largest number of names that are remembered as busy. */
const MOST = 256

/** Milliseconds. If the round trip is longer, asking twice costs more than the small program saves. */
const LONGEST_TRIP = 2

/** The part of a `Request` that the programs need. */
interface LoneRequest {
  readonly verb: string
  readonly key: string
  readonly id: string
  readonly parameters: string
}

/** A call of a program. */
export interface Call {
  readonly program: Program
  readonly keys: readonly string[]
  readonly args: readonly string[]
}

/**
 * Requests that are alone in their round trip. A small program serves them with only the keys that they need. What it
 * cannot decide is sent to the script of the store, with the same deadline. Requests for a name that was recently busy go
 * to the script at once. That is only a hint: both make the same decisions.
 */
export class LoneRequests {
  readonly #counter: string
  /** The times when names were busy, by key. */
  readonly #busy = new Map<string, number>()

  /** `counter`: the key of the highest token. */
  constructor(counter: string) {
    this.#counter = counter
  }

  /** The call for a request. `undefined`: use the script. */
  callOf(
    { verb, key, id, parameters }: LoneRequest,
    deadline: number,
    sent: number,
    roundTrip: number,
  ): Call | undefined {
    if (roundTrip > LONGEST_TRIP) return undefined
    const busy = this.#busy.get(key)
    if (busy !== undefined && sent < busy + LATELY) return undefined
    if (verb === 'release') return { program: releaseAlone, keys: [key, this.#counter], args: [id] }
    if (verb !== 'acquire') return undefined
    return { program: acquireAlone, keys: [key, key + GONE + id, this.#counter], args: [`${deadline}`, parameters, id] }
  }

  /**
   * Learns from an answer of the script. The program could not have decided it if the name is held (`-…`) or was released
   * with waiters (`1`).
   */
  learn(key: string, answer: unknown, sent: number): void {
    if (!/^[-1]/.test(String(answer))) return
    if (this.#busy.size >= MOST) this.#busy.clear()
    this.#busy.set(key, sent)
  }
}
