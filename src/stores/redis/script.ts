import { createHash } from 'node:crypto'
import { TURN } from '../line.ts'

/** Milliseconds for which a name that is no longer used keeps its counter. */
export const COUNTER_LIFETIME = 86_400_000

/**
 * Everything this store does to a server, as one script: a list of requests in, the server's time and an answer to
 * each out. A request that fails fails alone. `docs/format.md` describes the keys and the requests.
 *
 * Tokens are written with `%.0f`, since Lua itself prints 1.7e15 as `1.7e+15`; milliseconds have 13 digits, which it
 * prints in full. What every acquire and release goes through is written for speed: about 6 us each.
 */
export const source: string = `
local MOST, TURN, COUNTER_LIFETIME = 9007199254740991, ${TURN}, ${COUNTER_LIFETIME}
local call, match, sub, format = redis.call, string.match, string.sub, string.format
local min, max = math.min, math.max
local channel, cluster = ARGV[1], ARGV[2] == '1'

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local micros = time[1] * 1000000 + time[2]

-- Every value begins with the number of its format.
local function unknown(value) error('FORMAT ' .. tostring(match(value, '^%S*'))) end

-- The lease, the last token, and if there is a line, when the name fell or will fall free; was the id withdrawn?
local function read(key, id)
  local found = call('MGET', key, key .. ':state', key .. ':gone:' .. id)
  local lease, state, token, line = found[1], found[2], '0', nil
  if lease and sub(lease, 1, 2) ~= '1 ' then unknown(lease) end
  if state then
    token, line = match(state, '^1 (%d+) ?(%d*)$')
    if not token then unknown(state) end
  elseif lease then
    token = match(lease, '^1 %S+ (%d+)')
  end
  return lease, token, tonumber(line), found[3]
end

-- The token, the ttl and the details of a lease if its id is this one.
local function mine(lease, id)
  local start = #id + 3
  if not lease or sub(lease, 3, start) ~= id .. ' ' then return nil end
  return match(lease, '^(%d+) (%d+) (.*)$', start + 1)
end

-- The state outlives the lease, and the day of the token itself, should the clock have been ahead when it was given.
local function save(key, token, ttl, line)
  local life = max(math.ceil(token / 1000) - now, ttl) + COUNTER_LIFETIME
  call('SET', key .. ':state', line and '1 ' .. token .. ' ' .. line or '1 ' .. token, 'PX', life)
end

-- The hybrid clock: with the counter gone, by expiry, a restart or a failover, time still keeps tokens rising.
local function nextToken(token)
  local new = max(token + 1, micros)
  if new > MOST then error('TOKEN ' .. token) end
  return format('%.0f', new)
end

local function hold(key, id, token, ttl, details, line)
  call('SET', key, '1 ' .. id .. ' ' .. token .. ' ' .. ttl .. ' ' .. details, 'PX', ttl)
  save(key, token, ttl, line and now + ttl)
  return '+' .. token
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

local function queue(key, id, isNew, lifetime, details)
  if isNew then
    local last = call('ZREVRANGE', key .. ':line', 0, 0, 'WITHSCORES')
    call('ZADD', key .. ':line', (last[2] or 0) + 1, id)
  end
  call('ZADD', key .. ':lapse', now + lifetime, id)
  call('HSET', key .. ':waiter', id, channel .. ' ' .. details)
  -- A second longer than the last place, so that none of the three is missed while there is one.
  if call('PTTL', key .. ':lapse') < lifetime + 1000 then
    for _, kind in ipairs({ ':line', ':lapse', ':waiter' }) do call('PEXPIRE', key .. kind, lifetime + 2000) end
  end
end

-- Wakes the first of the line whose process listens. In a cluster, receivers are counted on one node only.
local function wake(key)
  lapse(key)
  for _, id in ipairs(call('ZRANGE', key .. ':line', 0, 9)) do
    local target = match(call('HGET', key .. ':waiter', id) or '-', '^%S+')
    if target ~= '-' then
      local heard = redis.pcall('PUBLISH', target, id)
      if cluster or type(heard) ~= 'number' or heard > 0 then return end
    end
  end
end

-- Milliseconds until the lease ends. Only a clock that was set back makes it more than its ttl, which is then enough.
local function remaining(key, lease)
  local left, ttl = call('PTTL', key), tonumber(match(lease, '^1 %S+ %d+ (%d+)'))
  if left <= ttl then return left end
  call('PEXPIRE', key, ttl)
  return ttl
end

local verbs = {}

function verbs.acquire(key, id, ttl, lifetime, queues, details)
  local lease, token, line, gone = read(key, id)
  if gone then return 'x' end
  local held = mine(lease, id)
  -- A late copy of the request must not shorten what was renewed for longer since.
  if held and remaining(key, lease) > ttl then return '+' .. held end
  if held then return hold(key, id, held, ttl, details, line) end
  local ahead, place = 0, false
  if line then
    lapse(key)
    place = call('ZRANK', key .. ':line', id)
    ahead = place or call('ZCARD', key .. ':line')
  end
  local free = lease and now + remaining(key, lease) or min(line or now, now)
  if not lease and now >= free + ahead * TURN then
    if place then leave(key, { id }) end
    return hold(key, id, nextToken(token), ttl, details, line and call('ZCARD', key .. ':line') > 0)
  end
  if queues == '1' then
    queue(key, id, not place, lifetime, details)
    if not line then save(key, token, lifetime, free) end
  end
  return '-' .. free .. ' ' .. ahead .. ' ' .. (lease or '')
end

function verbs.renew(key, id, ttl)
  local lease, _, line = read(key, id)
  local token, granted, details = mine(lease, id)
  if not token then return '0' end
  if line or tonumber(granted) ~= ttl then return hold(key, id, token, ttl, details, line) end
  call('PEXPIRE', key, ttl)
  save(key, token, ttl)
  return '+' .. token
end

function verbs.release(key, id, memory)
  local lease, token, line = read(key, id)
  local held = mine(lease, id)
  local waited = line and leave(key, { id })
  if held then
    call('DEL', key)
    if line then save(key, token, 0, now) end
  end
  if line and (held or waited and not lease) then wake(key) end
  if held or waited then return '1' end
  call('SET', key .. ':gone:' .. id, '1', 'PX', memory)
  return '0'
end

-- 'break' is a word of Lua.
verbs['break'] = function(key, id, memory, _, _, by)
  local lease, token, line = read(key, id)
  if not lease then return '0' end
  local new = nextToken(token)
  call('DEL', key)
  save(key, new, 0, line and now)
  call('SET', key .. ':broken', '1 ' .. new .. ' ' .. now .. ' ' .. by, 'PX', memory)
  if line then wake(key) end
  return '+' .. new
end

function verbs.inspect(key, id)
  local lease, _, line = read(key, id)
  local found = { lease or '', lease and remaining(key, lease) or 0 }
  if not line then return found end
  lapse(key)
  for _, waiter in ipairs(call('ZRANGE', key .. ':line', 0, -1)) do
    found[#found + 1] = call('ZSCORE', key .. ':lapse', waiter) or '0'
    found[#found + 1] = call('HGET', key .. ':waiter', waiter) or ''
  end
  return found
end

local function answer(key, request)
  local verb, id, deadline, ttl, lifetime, queues, rest = match(request, '^(%a+) (%S+) (%d+) (%d+) (%d+) ([01]) (.*)$')
  -- Late: its sender has given up. The time goes along, so that the sender can correct its idea of it.
  if deadline ~= '0' and now > tonumber(deadline) then return 'late' end
  return verbs[verb](key, id, tonumber(ttl), tonumber(lifetime), queues, rest)
end

local answers = { format('%.0f', now) }
for index, key in ipairs(KEYS) do
  local fine, result = pcall(answer, key, ARGV[index + 2])
  if not fine then result = '!' .. (type(result) == 'table' and result.err or tostring(result)) end
  answers[index + 1] = result
end
return answers
`

export const sha: string = createHash('sha1').update(source).digest('hex')
