import { createHash } from 'node:crypto'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import type { Wire } from './client.ts'

/** Milliseconds for which an unused name keeps its last token if no counter of the server covers that token. */
export const MEMORY = 86_400_000

/** The parameters of a release. They say how long an unknown claim is refused. */
export const FORGET: string = `${LONGEST_REQUEST} 0 0 `

/** Lua that a server runs as one atomic step. */
export interface Program {
  readonly source: string
  /** The hash that names the program once the server has loaded it. */
  readonly sha: string
}

/** The program for all requests of a store. */
export interface Script extends Program {
  readonly touches: Touches
}

/** For each verb, the suffixes of the other keys that it touches. The id of the claim follows `GONE`. */
type Touches = Readonly<Record<string, readonly string[]>>

/** The suffix of a tombstone's key. The id of the claim follows it. */
export const GONE = ':gone:'

export interface Parts {
  /** Lua that leaves a local table `verbs` of functions `(key, id, ttl, life, queues, rest)`. */
  readonly verbs: string
  readonly touches: Touches
  /** The index in `ARGV` at which the requests begin. The arguments before it are the same for all. @default 3 */
  readonly first?: number
  /** Lua for the first answer, which begins with the time. @default 'now' */
  readonly head?: string
  /** Lua that runs before the functions, and may return the answers. It can use what `clock` below declares. */
  readonly fastPath?: string
  /** Lua that runs after all requests. */
  readonly last?: string
}

/**
 * The one script that a store calls. It takes a list of requests, and returns the server's time and an answer to each
 * request. A request that fails does not fail the others. README.md describes the keys and the requests.
 *
 * The code that every acquire and release runs is written for speed. In a batch each takes about 5 us. Of that a command
 * takes 0.3 to 0.5, formatting a number 0.3, and matching `%S+` twice as long as `[^ ]+`. `SET` with `PX` takes longer than
 * `SET` and `PEXPIRE`, and `SETRANGE` takes less than either. Tokens are written with `%.0f`, because Lua itself prints
 * 1.7e15 as `1.7e+15`.
 */
export function scriptOf({ verbs, touches, first = 3, head = 'now', fastPath = '', last = '' }: Parts): Script {
  const source = `${clock}${fastPath}${common}${verbs}${carryOut(first, head, last)}`
  return { ...programOf(source), touches }
}

export function programOf(source: string): Program {
  return { source, sha: createHash('sha1').update(source).digest('hex') }
}

/**
 * Calls a script by its hash if that is in `loaded`. Otherwise, and if the server does not have the script, sends the
 * source.
 */
export function evaluate(
  wire: Wire,
  loaded: Set<string>,
  { source, sha }: Program,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  const call = (command: string, script: string): Promise<unknown> =>
    wire.call([command, script, `${keys.length}`, ...keys, ...args], keys[0])
  const load = async (): Promise<unknown> => {
    const answer = await call('eval', source)
    loaded.add(sha)
    return answer
  }
  if (!loaded.has(sha)) return load()
  return call('evalsha', sha).catch(error => {
    if (!/NOSCRIPT|NoScript/.test(String(error))) throw error
    return load()
  })
}

const clock = `
local call, match, sub, format, rep = redis.call, string.match, string.sub, string.format, string.rep
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- The hybrid clock, in microseconds: without the last token, after a restart or a failover, tokens still rise.
local floor = time[1] * 1000000 + time[2]
local LAST_TOKEN = 9007199254740991
`

const common = `
-- What this call knows of each name. A request that failed may have left it wrong.
local names = {}
-- Messages to waiters of the caller. Why messages to others were refused, if they were.
local woken, refused
local channel, cluster = ARGV[1], ARGV[2] == '1'

-- By ttl: when a lease that is granted now ends, always in 13 digits.
local terms = {}
local function endOf(ttl)
  local ends = terms[ttl]
  if not ends then
    ends = format('%013.0f', now + ttl)
    terms[ttl] = ends
  end
  return ends
end

-- A server that is out of memory refuses such a command only as the first write of a script. So a name that exists can
-- still be written, and leases can be renewed and released.
local function put(key, ...)
  local done = redis.pcall(...)
  if type(done) == 'table' and done.err then
    local life = call('PTTL', key)
    if life < 0 then error(done) end
    call('PEXPIRE', key, life)
    call(...)
  end
end

-- Answers a number that no token of a forgotten name exceeds, if the store has one.
local counter

-- Keeps a name for LIFE ms; for longer if the clock was ahead when its token was granted.
local function remember(key, token, life)
  if tonumber(token) > floor and not (counter and tonumber(token) <= counter()) then life = math.ceil(token / 1000) - now + life end
  call('PEXPIRE', key, life)
end

-- Before a write for waiters that have their positions: a server that is out of memory refuses only the first write of a
-- script. This one changes nothing.
local function mayGrow(key) call('ZREM', key .. ':lapse', '') end

-- Sends a message to the process of a waiter. Answers how many received it, or nothing if that was refused.
local function tell(target, message)
  if target == channel then
    woken = (woken and woken .. ',' or '') .. message
    return 1
  end
  local receivers = redis.pcall('PUBLISH', target, message)
  if type(receivers) == 'number' then return receivers end
  refused = receivers.err
end
`

const carryOut = (first: number, head: string, last: string): string => `
-- Equal requests, one after the other, share a line of parameters.
local answers, isList = { ${head} }, false
for at = ${first}, #ARGV, 2 do
  local verb, width, deadline, ttl, life, queues, rest = match(
    ARGV[at], '^(%a+) (%d+) (%d+) (%d+) (%d+) (%d+) (.*)$'
  )
  local ids = ARGV[at + 1]
  -- Late: the sender has given up, or its estimate of this clock is wrong. It gets the time with the answer, and corrects it.
  local late = deadline ~= '0' and now > tonumber(deadline)
  for from = 1, #ids, width do
    local fine, result = true, 'late'
    local id = sub(ids, from, from + width - 1)
    if not late then fine, result = pcall(verbs[verb], KEYS[#answers], id, ttl, life, queues, rest) end
    if not fine then
      names = {}
      result = '!' .. (type(result) == 'table' and result.err or tostring(result))
    end
    if type(result) == 'table' or (#result > 17 or not fine) and string.find(result, '\\n', 1, true) then isList = true end
    answers[#answers + 1] = result
  end
end
${last}if woken or refused then answers[#answers + 1] = woken or '' end
if refused then answers[#answers + 1] = refused end
-- Clients read one text faster than a list, of which ioredis makes each element a view of the bytes that it read: 256
-- pairs at a time are 14 % faster.
return isList and answers or table.concat(answers, '\\n')
`
