-- Decides who is next for a name, by the rules of `Name` in stores/rules/name.ts. A waiter that was passed is only in `:lapse`
-- and `:claim`, until it asks again.

local function firsts(key) return call('ZRANGEBYSCORE', key .. ':line', '(0', '+inf', 'LIMIT', 0, 2) end

local function leave(key, ids)
  call('ZREM', key .. ':line', unpack(ids))
  call('HDEL', key .. ':claim', unpack(ids))
  return call('ZREM', key .. ':lapse', unpack(ids)) > 0
end

-- Removes waiters. Only another first waiter gets a new grace period: those behind come and go without an end.
local function withdraw(key, name, ids)
  local before = firsts(key)
  leave(key, ids)
  local after = firsts(key)
  if before[1] ~= after[1] then
    change(key, name)
    if name.gen then write(key, name) elseif name.state == 'free' then mark(key, name) end
  elseif before[2] ~= after[2] then seconds[key] = true end
end

-- Finds the waiters whose positions have lapsed.
local function lapsed(key)
  local lapse, longest = key .. ':lapse', now + LONGEST_LIFETIME
  local last = call('ZREVRANGE', lapse, 0, 0, 'WITHSCORES')
  -- Without that key, such as when nobody has asked for a while. That of the queue lasts as long as the leases of a group.
  if not last[1] then return call('ZRANGEBYSCORE', key .. ':line', '(0', '+inf', 'LIMIT', 0, 1000) end
  if last[2] - longest > 1 then -- the clock was set back
    mayGrow(key)
    for _, id in ipairs(call('ZRANGEBYSCORE', lapse, format('(%.0f', longest), '+inf', 'LIMIT', 0, 1000)) do
      call('ZADD', lapse, longest, id)
    end
  end
  return call('ZRANGEBYSCORE', lapse, '-inf', now, 'LIMIT', 0, 1000)
end

-- Reads a name, without what has ended. All requests of a call have one time, so this is done once. In a slot that moves,
-- FORMEMBER leaves the queue as it is, because its keys may be on the other node.
local function open(key, forMember)
  local name = names[key]
  if name then return name end
  name = read(key)
  names[key] = name
  if name.state == 'many' then openGroup(key, name)
  elseif name.state == 'held' and name.ends <= now then
    name.state = 'free'
    if name.line == '1' then
      change(key, name)
      mark(key, name)
    end
  end
  if name.line == '1' and not (forMember and isSplit) then
    need(key, QUEUE)
    repeat
      local ids = lapsed(key)
      if #ids > 0 then withdraw(key, name, ids) end
    until #ids == 0 or call('ZCARD', key .. ':lapse') > 0 -- later waiters would bring that key back
  end
  return name
end

local function fits(name, limit, units)
  limit, units = tonumber(limit), tonumber(units)
  if name.state == 'free' then return true end
  if name.share == '' and not name.gen or name.lost then return false end
  if not name.gen then
    local least, used = match(name.share, '(%d+)/(%d+)')
    return math.min(least, limit) - used >= units
  end
  local least = math.huge
  for each in string.gmatch(name.limits, '(%d+)x') do least = math.min(least, each) end
  if math.min(least, limit) - name.used < units then return false end
  local at, digit = match(name.map, '()([1-9a-f])0*$')
  return limit >= least or at * 4 - 4 + math.floor(math.log(tonumber(digit, 16)) / math.log(2) + 0.01) < limit
end

-- Answers when the first waiter may be passed, which is after its grace period if it fits, and the first two waiters.
local function passableAt(key, name)
  local first, second = unpack(firsts(key))
  local _, _, roundTrip, limit, units = waiterOf(first and call('HGET', key .. ':claim', first))
  if not limit or not fits(name, limit, units) then return math.huge, first, second end
  return (name.since or name.ends) + TURN + roundTrip, first, second
end

-- Answers the earliest time at which a claim that has AHEAD waiters before it may be granted if nothing is freed.
local function soonest(key, name, ahead)
  local at = name.state == 'held' and name.ends or name.gen and nextOf(key, name) or math.huge
  if ahead == 0 then return at end
  if ahead > 1 then return math.min(at, call('ZRANGE', key .. ':lapse', 0, 0, 'WITHSCORES')[2] or now) end
  local passable, first = passableAt(key, name)
  if passable <= now then passable = math.huge end -- the claim does not fit itself
  return math.min(at, passable, call('ZSCORE', key .. ':lapse', first) or now)
end

-- Lets a claim join the queue or keep its position. ARRIVAL is its position if it has one.
local function join(key, name, id, arrival, ttl, roundTrip, limit, units, details)
  local lifetime = math.min(math.max(ttl, SHORTEST_LIFETIME), LONGEST_LIFETIME)
  if arrival then
    mayGrow(key)
  else
    local last = call('ZREVRANGE', key .. ':line', 0, 0, 'WITHSCORES')
    arrival = format('%.0f', math.max((last[2] or 0) + 1, floor))
  end
  call('ZADD', key .. ':line', arrival, id)
  call('ZADD', key .. ':lapse', endOf(lifetime), id)
  call('HSET', key .. ':claim', id, table.concat({ 'w', channel, arrival, roundTrip, limit, units, details }, ' '))
  extend(key, QUEUE, lifetime)
  if name.line == '1' then return end
  name.line = '1'
  if name.share ~= '' then gather(key, name, name.token) end
  if name.gen then write(key, name) else mark(key, name) end
end

-- Wakes the first waiter if it fits, and tells the second to come after its grace period.
function made.wake(key)
  local name = open(key)
  if name.line == '0' or name.state == 'held' and name.share == '' then return end
  local at, first, second = passableAt(key, name)
  local function hint(id, message)
    local target = waiterOf(call('HGET', key .. ':claim', id))
    if target and target ~= '-' then tell(target, message) end
  end
  if at == math.huge then return end
  if freed[key] then hint(first, first) end
  if second then hint(second, second .. ' ' .. format('%.0f', math.max(at - now, 0))) end
end
