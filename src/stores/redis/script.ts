import { createHash } from 'node:crypto'
import { FIRST_TURNS, LONG_TURNS, LONGEST_REQUEST, SHORT_TURN, TURN } from '../../contract/time.ts'
import { placeLifetime } from '../shared/queue.ts'
import type { Wire } from './client.ts'

/** Milliseconds for which an unused name keeps its last token where no counter of the server covers it. */
export const MEMORY = 86_400_000

/** The parameters of a release: for how long an unknown claim is refused. */
export const FORGET: string = `${LONGEST_REQUEST} 0 0 `

/** A program that a server runs as one step. */
export interface Script {
  readonly source: string
  /** Names it once the server knows it. */
  readonly sha: string
  readonly touches: Touches
}

/** For each verb, the suffixes of the other keys that it touches. The claim's id follows `GONE`. */
type Touches = Readonly<Record<string, readonly string[]>>

/** The suffixes of the keys of a queue. */
export const LINE: readonly string[] = [':line', ':lapse', ':waiter']
/** The suffix of a tombstone, before the claim's id. */
export const GONE = ':gone:'

export interface Parts {
  /** Lua that leaves a local table `verbs` of functions `(key, id, ttl, life, queues, rest)`. */
  readonly verbs: string
  readonly touches: Touches
  /** Where the requests begin in `ARGV`: what comes before is the same for all. @default 3 */
  readonly first?: number
  /** Lua for the first answer, which begins with the time. @default 'now' */
  readonly head?: string
  /** Lua that comes before the functions, and may return the answers. It has what `clock` below declares. */
  readonly fastPath?: string
  /** Lua that comes after all requests. */
  readonly last?: string
}

/**
 * The one script that a store calls: a list of requests in, the server's time and an answer to each out. A request that
 * fails fails alone. `docs/reference/format.md` describes the keys and the requests.
 *
 * What every acquire and release goes through is written for speed. In a batch each takes about 5 us, of which a command
 * takes 0.3 to 0.5, a number made into text 0.3, and matching `%S+` twice as long as `[^ ]+`. `SET` with `PX` takes longer
 * than `SET` and `PEXPIRE`, and `SETRANGE` less than either. Tokens are written with `%.0f`: Lua itself prints 1.7e15 as
 * `1.7e+15`.
 */
export function scriptOf({ verbs, touches, first = 3, head = 'now', fastPath = '', last = '' }: Parts): Script {
  const source = `${clock}${fastPath}${common}${verbs}${carryOut(first, head, last)}`
  return { source, sha: createHash('sha1').update(source).digest('hex'), touches }
}

/** Calls a script, by its hash if it is in `loaded`. To a server without that script, the source is sent. */
export async function evaluate(
  wire: Wire,
  loaded: Set<string>,
  { source, sha }: Pick<Script, 'source' | 'sha'>,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  const call = (command: string, script: string): Promise<unknown> =>
    wire.call([command, script, String(keys.length), ...keys, ...args], keys[0])
  if (loaded.has(sha)) {
    try {
      return await call('evalsha', sha)
    } catch (error) {
      if (!/NOSCRIPT|NoScript/.test(String(error))) throw error
    }
  }
  const answer = await call('eval', source)
  loaded.add(sha)
  return answer
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
-- Messages to waiters of the caller. Why messages to others were refused, if they were.
local woken, refused
local TURN, MEMORY, SHORTEST_PLACE = ${TURN}, ${MEMORY}, ${placeLifetime(0)}
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

-- Milliseconds after which a waiter may acquire a free name, by the number of waiters ahead. Their round trips come on top.
local function turnAfter(ahead) return math.min(ahead * TURN, ${FIRST_TURNS} + ahead * ${SHORT_TURN}) end

-- The values that this call has read and not written since. False: there is none. GET refuses a key of another type, which
-- MGET reads as missing.
local known = {}
local function get(key)
  if known[key] == nil then known[key] = call('GET', key) end
  return known[key]
end

-- A server that is out of memory refuses such a command only as the first write of a script. So a name that exists can
-- still be written, and leases can be renewed and released.
local function put(key, ...)
  known[key] = nil
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

local function write(key, value, token, life, state, rest)
  local new = '1 ' .. state .. ' ' .. token .. ' ' .. rest
  if value then put(key, 'SETRANGE', key, '0', new .. rep(' ', #value - #new)) else put(key, 'SET', key, new) end
  remember(key, token, life)
end

-- Writes the state of a name in place, at a fixed width: when its lease ends, and whether there is a queue.
local function mark(key, state) put(key, 'SETRANGE', key, '2', state) end

-- Reads a name's value: is it held; until when, or since when is it free; is there a queue ('1'); the last token; the ttl
-- of the current or last holder; and where in the value the id and details begin.
local function parse(key, value)
  if not value then return false, 0, '0', '0' end
  local ends, state, line, token, ttl, start = match(value, '^1 ([^ ]+) ([^ ]+) ([01]) (%d+) ([^ ]+) ()')
  if not token then error('FORMAT ' .. match(value, '^[^ ]*')) end
  local held = state == 'held'
  local most = held and tonumber(ttl) or 0
  ends = tonumber(ends)
  -- More than the ttl remains only after the clock was set back. The lease is then shortened to its ttl.
  if ends - now > most then
    ends = now + most
    mark(key, format('%013.0f %s %s', ends, state, line))
  end
  return held and now < ends, ends, line, token, ttl, start
end

-- Replaces the details that begin at START, and leaves everything before them as it is.
local function describe(key, value, start, details)
  put(key, 'SETRANGE', key, start - 1, details .. rep(' ', #value + 1 - start - #details))
end

local function isOf(id, value, start) return sub(value, start, start + #id) == id .. ' ' end
local function detailsOf(value, start) return match(value, ' (.*)$', start) end

local function leave(key, ids)
  call('ZREM', key .. ':lapse', unpack(ids))
  call('HDEL', key .. ':waiter', unpack(ids))
  return call('ZREM', key .. ':line', unpack(ids)) > 0
end

-- Removes lapsed waiters from the queue, once in a call: all of a call has one time.
local lapsed = {}
local function lapse(key)
  if lapsed[key] then return end
  lapsed[key] = true
  local ids = call('ZRANGEBYSCORE', key .. ':lapse', '-inf', endOf('0'), 'LIMIT', '0', '1000')
  if #ids > 0 then leave(key, ids) end
end

-- The keys of a queue last a second longer than the last waiter, so that all three exist while there is one.
local function extend(key, lifetime)
  if call('PTTL', key .. ':lapse') < lifetime + 1000 then
    for _, kind in ipairs({ ':line', ':lapse', ':waiter' }) do call('PEXPIRE', key .. kind, lifetime + 2000) end
  end
end

-- Before a write for waiters that have their positions: a server that is out of memory refuses only the first write of a
-- script. This one changes nothing.
local function mayGrow(key) call('ZREM', key .. ':lapse', '') end

-- Milliseconds that the round trips of the waiters AHEAD add to their grace periods.
local function roundTrips(key, ahead)
  local sum = 0
  local ids = ahead > 0 and call('ZRANGE', key .. ':line', '0', math.min(ahead, ${LONG_TURNS}) - 1) or {}
  for _, waiter in ipairs(#ids > 0 and call('HMGET', key .. ':waiter', unpack(ids)) or {}) do
    sum = sum + (match(waiter or '', '^[^ ]+ [^ ]+ (%d+) ') or 0)
  end
  return sum
end

local function queue(key, id, isNew, ttl, details, roundTrip)
  local lifetime = math.max(ttl, SHORTEST_PLACE)
  if isNew then
    local last = call('ZREVRANGE', key .. ':line', '0', '0', 'WITHSCORES')
    call('ZADD', key .. ':line', (last[2] or 0) + 1, id)
  else
    mayGrow(key)
  end
  call('ZADD', key .. ':lapse', endOf(lifetime), id)
  call('HSET', key .. ':waiter', id, channel .. ' ' .. endOf('0') .. ' ' .. roundTrip .. ' ' .. details)
  extend(key, lifetime)
end

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

-- Wakes the first waiter whose process is subscribed, or the first MOST. A waiter that has not asked recently may be paused
-- (it asks in the future after the clock was set back).
-- So the first waiter of another process is also told to ask, after the grace periods before it. A cluster counts receivers
-- on one node only. If no message to the first ten was received, their processes have died, perhaps with hundreds of waiters.
local function wake(key, most)
  most = most or 1
  lapse(key)
  local first, deaf, later = nil, {}, 0
  for from = 0, 10, 10 do -- the first ten, then those up to the thousandth
    for at, id in ipairs(call('ZRANGE', key .. ':line', from, from * 99 + 9)) do
      local place = from + at
      local target, asked, roundTrip = match(call('HGET', key .. ':waiter', id) or '- 0 0 ', '^([^ ]+) ([^ ]+) (%d+) ')
      local isNext = place <= most
      if target ~= '-' and not deaf[target] and (isNext or target ~= first) then
        local message = id
        if first and not isNext then message = id .. ' ' .. turnAfter(place - 1) + later end
        local receivers = tell(target, message) or 1
        if cluster or receivers > 0 then
          if first and not isNext or place >= most and math.abs(now - asked) < TURN then return end
          first = first or target
        else
          deaf[target] = true
        end
      end
      if place <= ${LONG_TURNS} then later = later + (roundTrip or 0) end
    end
    if first or not next(deaf) then return end
  end
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
    if not fine then result = '!' .. (type(result) == 'table' and result.err or tostring(result)) end
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
