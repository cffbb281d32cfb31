import { fastPath } from './fast-path.ts'
import { GONE, LINE, type Script, scriptOf } from './script.ts'

/** What one server, or one node of a cluster, does for this store. */
export const script: Script = scriptOf({
  touches: {
    acquire: [...LINE, GONE],
    acquireSome: [...LINE, GONE],
    release: [...LINE, GONE],
    break: LINE,
    inspect: LINE,
    keep: LINE,
  },
  first: 4,
  fastPath,
  // It comes after the grants. As the first write of a call, a server that is out of memory would refuse it.
  last: "if isHigher then redis.pcall('SET', KEYS[#KEYS], format('%.0f', highest)) end\n",
  verbs: `
-- Milliseconds that the last request of the caller took.
local ROUND_TRIP = ARGV[3]

-- The counter of the server: no token of a name that it forgot is higher. In a cluster each name would have it on another
-- node, so there is none.
local highest, isHigher = cluster and 0 or nil, false
function counter()
  if not highest then
    highest = tonumber(redis.pcall('GET', KEYS[#KEYS]) or '0')
    if not highest then error('COUNTER -') end
  end
  return highest
end

local function nextToken(token)
  local new, what = math.max(floor, counter() + 1), 'COUNTER '
  if tonumber(token) >= new then
    -- Only this name is so far ahead, and it is remembered by itself.
    new, what = token + 1, 'TOKEN '
  elseif not cluster then
    highest, isHigher = new, true
  end
  if new > LAST_TOKEN then error(what .. format('%.0f', new - 1)) end
  return format('%.0f', new)
end

-- Extends the lease of the same claim, from now.
local function prolong(key, value, line, token, granted, start, ttl, life)
  local state = endOf(ttl) .. ' held ' .. line
  if granted ~= ttl then return write(key, value, token, life, state, ttl .. ' ' .. sub(value, start)) end
  mark(key, state)
  remember(key, token, life)
end

-- QUEUES: '0', or '1' with the round trip of the claim behind it if that of the connection does not count.
local function acquire(key, id, ttl, life, queues, details)
  local value = get(key)
  local held, ends, line, token, granted, start = parse(key, value)
  local own = held and isOf(id, value, start)
  -- To answer that the name is held takes no other key. In a slot that moves, only the keys on this node can be read.
  if not own and not (held and queues == '0') and call('GET', key .. ':gone:' .. id) then return 'x' end
  if own then
    -- A stale copy of the request must not shorten what a renewal has extended since.
    if ends - now <= tonumber(ttl) then prolong(key, value, line, token, granted, start, ttl, life) end
    return '+' .. token
  end
  local ahead, place = 0, false
  if line == '1' then
    lapse(key)
    place = call('ZRANK', key .. ':line', id)
    ahead = place or call('ZCARD', key .. ':line')
  end
  if not held then ends = ends + roundTrips(key, ahead) end
  if not held and now >= ends + turnAfter(ahead) then
    if place then leave(key, { id }) end
    if line == '1' and call('ZCARD', key .. ':line') == 0 then line = '0' end
    token = nextToken(token)
    write(key, value, token, life, endOf(ttl) .. ' held ' .. line, ttl .. ' ' .. id .. ' ' .. details)
    return '+' .. token
  end
  if queues ~= '0' then
    queue(key, id, not place, ttl, details, tonumber(sub(queues, 2)) or ROUND_TRIP)
    if line == '0' then mark(key, format('%013.0f held 1', ends)) end
  end
  return format('-%.0f %d ', ends, ahead) .. (held and token .. ' ' .. detailsOf(value, start) or '')
end

-- MOST: how many waiters are woken, 1 if absent.
local function release(key, id, memory, _, _, most)
  local value = get(key)
  local held, _, line, token, _, start = parse(key, value)
  local own = held and isOf(id, value, start)
  local waited = not own and line == '1' and leave(key, { id })
  -- Ending its time deletes a key. DEL would take one more permission.
  if own and line == '0' and tonumber(token) <= counter() then put(key, 'PEXPIRE', key, '0')
  elseif own then mark(key, endOf('0') .. ' free ' .. line) end
  if line == '1' and (own or waited and not held) then wake(key, tonumber(most)) end
  if own or waited then return '1' end
  call('SET', key .. ':gone:' .. id, '1', 'PX', memory)
  return '0'
end

-- Acquires WANT of several names, or none, with the gate KEY. If it QUEUES and none is granted, it waits for the gate, or
-- holds the gate and waits for each name. The answers are in docs/reference/format.md.
local function acquireSome(key, id, ttl, life, queues, rest)
  local want, term, waits, list, details = match(rest, '^(%d+) (%d+) ([^\\n]*)\\n(.*)\\n([^\\n]*)$')
  want = tonumber(want)
  local names, tokens, free = {}, {}, {}
  for name in string.gmatch(list, '[^\\n]+') do
    names[#names + 1] = name
    tokens[#names] = '-'
  end
  local function take()
    for _, at in ipairs(free) do -- acquire checks the tombstone of a single name
      if want > 1 and call('GET', names[at] .. ':gone:' .. id) then return '-1 0' end
    end
    for _, at in ipairs(free) do
      local granted = acquire(names[at], id, ttl, life, '0', details)
      if granted == 'x' then return '-1 0' end
      tokens[at] = sub(granted, 2)
    end
    return '+' .. table.concat(tokens, ' ')
  end
  -- A repeated request gets what its claim holds, also if it is stale: it must not take another name, or end what is held.
  for at, name in ipairs(names) do
    local value = get(name)
    if value and string.find(value, id, 1, true) then
      local held, _, _, _, _, start = parse(name, value)
      if held and isOf(id, value, start) then free[#free + 1] = at end
    end
  end
  if #free >= want then return take() end
  free = {}

  -- Leaves the queues of all names but the granted one. With GATE it also releases the gate, and wakes as many of its waiters
  -- as there are free names.
  local function leaveAll(gate)
    local others = 0
    for at, name in ipairs(names) do
      local value = get(name)
      local waits = at ~= free[1] and value and match(value, '^1 [^ ]+ [^ ]+ 1 ')
      if waits and call('ZSCORE', name .. ':line', id) then release(name, id) end
      if gate and at ~= free[1] and not parse(name, value) then others = others + 1 end
    end
    if gate then release(gate, id, '', '', '', others) end
  end

  local isGated, _, line = parse(key, get(key))
  if line == '1' then lapse(key) end
  local isOpen = not isGated and (line == '0' or call('ZCARD', key .. ':line') == 0)
  local function enter() return acquire(key, id, term, life - ttl + term, '1', waits) end
  local entered = isOpen and '+' or queues == '1' and enter() or '-'
  if sub(entered, 1, 1) ~= '+' then
    if queues == '1' then leaveAll() end
    return '-1 0 ' .. sub(entered, 2)
  end

  local isBehind, holder = '0', ''
  for at, name in ipairs(names) do
    local value, ahead = get(name), 0
    local held, ends, line, token, _, start = parse(name, value)
    if not held and line == '1' then
      lapse(name)
      ahead = call('ZRANK', name .. ':line', id) or call('ZCARD', name .. ':line')
    end
    if held and isOf(id, value, start) or not held and now >= ends + turnAfter(ahead) + roundTrips(name, ahead) then
      free[#free + 1] = at
      if #free == want then break end
    elseif held then holder = ' ' .. at .. ' ' .. ends - now .. ' ' .. token .. ' ' .. detailsOf(value, start)
    else isBehind = '1' end
  end
  if #free == want then
    local answer = take()
    if queues == '1' then leaveAll(not isOpen and key) end
    return answer
  end
  if queues == '0' then return '-' .. isBehind .. ' ' .. #free .. ' 0 0' .. holder end
  if isOpen and sub(enter(), 1, 1) ~= '+' then return '-1 0' end
  local soonest
  for _, name in ipairs(names) do
    local ends, ahead = match(acquire(name, id, ttl, life, '1', details), '^-(%d+) (%d+)')
    if ends then soonest = math.min(soonest or math.huge, ends + turnAfter(ahead)) end
  end
  return '-0 ' .. #free .. ' ' .. format('%.0f', soonest or now) .. ' 0' .. holder
end

-- A replica may lack what its master has. It refuses this write, which changes nothing. So does a full server.
local function gone(key)
  local refused = redis.pcall('SETRANGE', key, 0, '')
  if type(refused) == 'table' and match(refused.err, 'READONLY') then error(refused.err) end
  return '0'
end

local function renew(key, id, ttl, life)
  local value = get(key)
  local held, _, line, token, granted, start = parse(key, value)
  if not held or not isOf(id, value, start) then return gone(key) end
  prolong(key, value, line, token, granted, start, ttl, life)
  return '+' .. token
end

local function annotate(key, id, _, _, _, details)
  local value = get(key)
  local held, _, _, _, _, start = parse(key, value)
  if not held or not isOf(id, value, start) then return gone(key) end
  describe(key, value, start + #id + 1, details)
  return '1'
end

-- OF: the token of the lease to end; empty: of any.
local function breakLease(key, _, _, life, _, of)
  local value = get(key)
  local held, _, line, token, ttl, start = parse(key, value)
  if not held or of ~= '' and of ~= token then return gone(key) end
  -- If no higher token is left, the lease ends all the same.
  local fine, new = pcall(nextToken, token)
  if fine then token = new end
  write(key, value, token, life, endOf('0') .. ' free ' .. line, ttl .. ' ' .. sub(value, start))
  if line == '1' then wake(key) end
  if not fine then error(new .. '; its lease was ended', 0) end
  return '+' .. token
end

-- Waiters that all requests of one call may read: a long queue must not block the server.
local room = 1000

-- The holder, the waiters after AFTER, and where the next page begins if there is one.
local function inspect(key, _, _, _, _, after)
  local value = get(key)
  local held, ends, line, token, _, start = parse(key, value)
  local found = { held and token .. ' ' .. detailsOf(value, start) or '', held and ends - now or 0, '' }
  if line == '0' then return found end
  lapse(key)
  if room == 0 then
    found[3] = after
    return found
  end
  local ids = call('ZRANGEBYSCORE', key .. ':line', '(' .. after, '+inf', 'LIMIT', 0, room)
  if #ids == 0 then return found end
  if #ids == room then found[3] = call('ZSCORE', key .. ':line', ids[#ids]) end
  room = room - #ids
  for place, waiter in ipairs(call('HMGET', key .. ':waiter', unpack(ids))) do
    found[#found + 1] = call('ZSCORE', key .. ':lapse', ids[place]) or '0'
    found[#found + 1] = waiter or ''
  end
  return found
end

-- Updates the round trip of a waiter. Only those of the first waiters count.
local function measure(key, id)
  local before, roundTrip, after = match(call('HGET', key .. ':waiter', id) or '', '^([^ ]+ [^ ]+ )(%d+)( .*)$')
  if before and roundTrip ~= ROUND_TRIP then call('HSET', key .. ':waiter', id, before .. ROUND_TRIP .. after) end
end

-- Keeps the positions of waiters of one process for LIFETIME ms. Answers until when, or since when, the name is held or
-- free; the position and id of the first of them; and those that have lost theirs, which XX does not bring back.
local function keep(key, _, lifetime, _, _, ids)
  local held, ends = parse(key, get(key))
  local lapses, scores, size, lost = endOf(lifetime), {}, 0, { '' }
  for id in string.gmatch(ids, '[^ ]+') do
    scores[size + 1], scores[size + 2] = lapses, id
    size = size + 2
  end
  lapse(key)
  mayGrow(key)
  if call('ZADD', key .. ':lapse', 'XX', 'CH', unpack(scores)) < size / 2 then
    for at = 2, size, 2 do
      if not call('ZSCORE', key .. ':lapse', scores[at]) then lost[#lost + 1] = scores[at] end
    end
  end
  extend(key, lifetime)
  -- The client knows them in the order in which they came, which is nearly always this one.
  local ahead, first
  for place, id in ipairs(call('ZRANGE', key .. ':line', '0', '9')) do
    if string.find(ids, id, 1, true) then
      measure(key, id)
      if not first then ahead, first = place - 1, id end
    end
  end
  ahead = ahead or call('ZRANK', key .. ':line', scores[2]) or 0
  if not held then ends = ends + roundTrips(key, ahead) end
  return format('%.0f %d ', ends, ahead) .. (first or '-') .. table.concat(lost, ' ')
end

local verbs = {
  acquire = acquire, acquireSome = acquireSome, renew = renew, annotate = annotate, release = release, inspect = inspect, keep = keep,
  ['break'] = breakLease
}
`,
})
