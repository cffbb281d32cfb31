import { createHash } from 'node:crypto'
import { placeLifetime, TURN } from '../line.ts'

/** Milliseconds for which a name that is no longer used keeps its last token. */
export const MEMORY = 86_400_000

/**
 * Everything this store does to a server, as one script: a list of requests in, the server's time and an answer to
 * each out. A request that fails fails alone. `docs/format.md` describes the keys and the requests.
 *
 * What every acquire and release goes through is written for speed: 3 us each, of which a command takes 0.3 to 0.5, a
 * number made into text 0.3, and matching `%S+` twice as long as `[^ ]+`. `SET` with `PX` takes longer than `SET` and
 * `PEXPIRE`, and `SETRANGE` less than either. Tokens are written with `%.0f`: Lua itself prints 1.7e15 as `1.7e+15`.
 */
export const source: string = `
local TURN, MEMORY, SHORTEST_PLACE = ${TURN}, ${MEMORY}, ${placeLifetime(0)}
local call, match, sub, format, rep = redis.call, string.match, string.sub, string.format, string.rep
local channel, cluster = ARGV[1], ARGV[2] == '1'

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- The hybrid clock, in microseconds: without the last token, after a day, a restart or a failover, tokens still rise.
local floor = time[1] * 1000000 + time[2]
local floorText = time[1] .. sub('00000' .. time[2], -6)

-- Of each ttl, when a lease of this moment ends; always 13 digits.
local terms = {}
local function endOf(ttl)
  local ends = terms[ttl]
  if not ends then
    ends = format('%013.0f', now + ttl)
    terms[ttl] = ends
  end
  return ends
end

-- A server that is full refuses such a command as the first write of a script only. So a name that is there can still
-- be written there, and leases can be renewed and released.
local function put(key, ...)
  local done = redis.pcall(...)
  if type(done) == 'table' and done.err then
    local life = call('PTTL', key)
    if life < 0 then error(done) end
    call('PEXPIRE', key, life)
    call(...)
  end
end

-- A name is remembered for so long; for longer if the clock was ahead when its token was given.
local function remember(key, token, life)
  if tonumber(token) > floor then life = math.ceil(token / 1000) - now + life end
  call('PEXPIRE', key, life)
end

local function write(key, value, token, life, state, rest)
  local new = '1 ' .. state .. ' ' .. token .. ' ' .. rest
  if value then put(key, 'SETRANGE', key, '0', new .. rep(' ', #value - #new)) else call('SET', key, new) end
  remember(key, token, life)
end

-- Writes in place how the name stands, of a width that never changes: when it falls free, and is there a line?
local function mark(key, state) put(key, 'SETRANGE', key, '2', state) end

-- What a name's value says: is it held, and until when, or since when is it free; has it a line ('1'); the last token;
-- the ttl of who holds it or held it last, and where in the value the id and details begin.
local function parse(key, value)
  if not value then return false, 0, '0', '0' end
  local ends, state, line, token, ttl, start = match(value, '^1 ([^ ]+) ([^ ]+) ([01]) ([^ ]+) ([^ ]+) ()')
  if not token then error('FORMAT ' .. match(value, '^[^ ]*')) end
  local held = state == 'held'
  local most = held and tonumber(ttl) or 0
  ends = tonumber(ends)
  -- Only a clock that was set back makes more remain than the ttl, which is then enough.
  if ends - now > most then
    ends = now + most
    mark(key, format('%013.0f %s %s', ends, state, line))
  end
  return held and now < ends, ends, line, token, ttl, start
end

local function isOf(id, value, start) return sub(value, start, start + #id) == id .. ' ' end
local function detailsOf(value, start) return match(value, ' (.*)$', start) end

local function nextToken(token)
  local new = token + 1
  if new <= floor then return floorText end
  if new > 9007199254740991 then error('TOKEN ' .. token) end
  return format('%.0f', new)
end

local function leave(key, ids)
  call('ZREM', key .. ':lapse', unpack(ids))
  call('HDEL', key .. ':waiter', unpack(ids))
  return call('ZREM', key .. ':line', unpack(ids)) > 0
end

-- Takes the places that lapsed out of the line.
local function lapse(key)
  local ids = call('ZRANGEBYSCORE', key .. ':lapse', '-inf', now, 'LIMIT', 0, 1000)
  if #ids > 0 then leave(key, ids) end
end

local function queue(key, id, isNew, ttl, details)
  local lifetime = math.max(ttl, SHORTEST_PLACE)
  if isNew then
    local last = call('ZREVRANGE', key .. ':line', 0, 0, 'WITHSCORES')
    call('ZADD', key .. ':line', (last[2] or 0) + 1, id)
  end
  call('ZADD', key .. ':lapse', now + lifetime, id)
  call('HSET', key .. ':waiter', id, channel .. ' ' .. endOf('0') .. ' ' .. details)
  -- A second longer than the last place, so that none of the three is missed while there is one.
  if call('PTTL', key .. ':lapse') < lifetime + 1000 then
    for _, kind in ipairs({ ':line', ':lapse', ':waiter' }) do call('PEXPIRE', key .. kind, lifetime + 2000) end
  end
end

-- Wakes the first of the line whose process listens. If that did not ask just now it may stand still: so the first of
-- another process is told to ask when the turns before it are over. In a cluster, receivers are counted on one node only.
local function wake(key)
  lapse(key)
  local ids = call('ZRANGE', key .. ':line', 0, 9)
  if #ids == 0 then return end
  local first
  for place, waiter in ipairs(call('HMGET', key .. ':waiter', unpack(ids))) do
    local target, asked = match(waiter or '- 0', '^([^ ]+) ([^ ]+)')
    if target ~= '-' and target ~= first then
      local heard = redis.pcall('PUBLISH', target, ids[place] .. (first and ' ' .. (place - 1) * TURN or ''))
      if cluster or type(heard) ~= 'number' or heard > 0 then
        if first or now - asked < TURN then return end
        first = target
      end
    end
  end
end

-- The same claim again, from now.
local function prolong(key, value, line, token, granted, start, ttl, life)
  local state = endOf(ttl) .. ' held ' .. line
  if granted ~= ttl then return write(key, value, token, life, state, ttl .. ' ' .. sub(value, start)) end
  mark(key, state)
  remember(key, token, life)
end

local function acquire(key, id, ttl, life, queues, details)
  local found = call('MGET', key, key .. ':gone:' .. id)
  local value = found[1]
  if found[2] then return 'x' end
  local held, ends, line, token, granted, start = parse(key, value)
  if held and isOf(id, value, start) then
    -- A late copy of the request must not shorten what was renewed for longer since.
    if ends - now <= tonumber(ttl) then prolong(key, value, line, token, granted, start, ttl, life) end
    return '+' .. token
  end
  local ahead, place = 0, false
  if line == '1' then
    lapse(key)
    place = call('ZRANK', key .. ':line', id)
    ahead = place or call('ZCARD', key .. ':line')
  end
  if not held and now >= ends + ahead * TURN then
    if place then leave(key, { id }) end
    if line == '1' and call('ZCARD', key .. ':line') == 0 then line = '0' end
    token = nextToken(token)
    write(key, value, token, life, endOf(ttl) .. ' held ' .. line, ttl .. ' ' .. id .. ' ' .. details)
    return '+' .. token
  end
  if queues == '1' then
    queue(key, id, not place, ttl, details)
    if line == '0' then mark(key, format('%013.0f held 1', ends)) end
  end
  return '-' .. ends .. ' ' .. ahead .. ' ' .. (held and token .. ' ' .. detailsOf(value, start) or '')
end

local function renew(key, id, ttl, life)
  local value = call('GET', key)
  local held, _, line, token, granted, start = parse(key, value)
  if not held or not isOf(id, value, start) then return '0' end
  prolong(key, value, line, token, granted, start, ttl, life)
  return '+' .. token
end

local function release(key, id, memory)
  local value = call('GET', key)
  local held, _, line, _, _, start = parse(key, value)
  local own = held and isOf(id, value, start)
  local waited = not own and line == '1' and leave(key, { id })
  if own then mark(key, endOf('0') .. ' free ' .. line) end
  if line == '1' and (own or waited and not held) then wake(key) end
  if own or waited then return '1' end
  call('SET', key .. ':gone:' .. id, '1', 'PX', memory)
  return '0'
end

local function breakLease(key, _, memory, _, _, by)
  local value = call('GET', key)
  local held, _, line, token, ttl, start = parse(key, value)
  if not held then return '0' end
  token = nextToken(token)
  write(key, value, token, MEMORY, endOf('0') .. ' free ' .. line, ttl .. ' ' .. sub(value, start))
  call('SET', key .. ':broken', '1 ' .. token .. ' ' .. endOf('0') .. ' ' .. by, 'PX', memory)
  if line == '1' then wake(key) end
  return '+' .. token
end

local function inspect(key)
  local value = call('GET', key)
  local held, ends, line, token, _, start = parse(key, value)
  local found = held and { token .. ' ' .. detailsOf(value, start), ends - now } or { '', 0 }
  if line == '0' then return found end
  lapse(key)
  for _, waiter in ipairs(call('ZRANGE', key .. ':line', 0, -1)) do
    found[#found + 1] = call('ZSCORE', key .. ':lapse', waiter) or '0'
    found[#found + 1] = call('HGET', key .. ':waiter', waiter) or ''
  end
  return found
end

local verbs = { acquire = acquire, renew = renew, release = release, inspect = inspect, ['break'] = breakLease }

-- Requests for the same, one after the other, share the telling of it.
local answers = { now }
for at = 3, #ARGV, 2 do
  local verb, width, deadline, ttl, life, queues, rest = match(
    ARGV[at], '^(%a+) (%d+) (%d+) (%d+) (%d+) ([01]) (.*)$'
  )
  local ids = ARGV[at + 1]
  -- Late: the sender has given up. The time goes along, so that it can correct its idea of it.
  local late = deadline ~= '0' and now > tonumber(deadline)
  for from = 1, #ids, width do
    local fine, result = true, 'late'
    local id = sub(ids, from, from + width - 1)
    if not late then fine, result = pcall(verbs[verb], KEYS[#answers], id, ttl, life, queues, rest) end
    if not fine then result = '!' .. (type(result) == 'table' and result.err or tostring(result)) end
    answers[#answers + 1] = result
  end
end
return answers
`

export const sha: string = createHash('sha1').update(source).digest('hex')
