-- The claims that share a name. They are members of `:line`, and the negative end of the lease is the score. Their entries
-- are in `:claim`. The score of a waiter in `:line` is the number of its arrival.

local QUEUE = { ':line', ':lapse', ':claim' }

-- Fails if the hash slot moves and one of these keys is not here: it may be on the other node, and the name must not be
-- decided without it.
local function need(key, kinds)
  for _, kind in ipairs(isSplit and kinds or {}) do
    if (tonumber(redis.pcall('PTTL', key .. kind)) or -2) == -2 then error('TRYAGAIN the keys of the name are on two nodes', 0) end
  end
end

-- The keys of claims last a second longer than the last of them.
local function extend(key, kinds, life)
  for _, kind in ipairs(kinds) do
    if call('PTTL', key .. kind) < life + 1000 then call('PEXPIRE', key .. kind, format('%.0f', life + 2000)) end
  end
end

-- Takes the lowest free slots of a group. Its map has a digit for four slots.
local function take(name, units)
  local map, slots, at = name.map, {}, 1
  while #slots < units do
    at = match(map, '^f*()', at)
    local digit = tonumber(sub(map, at, at), 16) or 0
    for bit = 0, 3 do
      if #slots < units and math.floor(digit / 2 ^ bit) % 2 == 0 then
        slots[#slots + 1] = at * 4 - 4 + bit
        digit = digit + 2 ^ bit
      end
    end
    map = sub(map, 1, at - 1) .. format('%x', digit) .. sub(map, at + 1)
  end
  name.map, name.used = map, name.used + units
  return table.concat(slots, ',')
end

-- Changes by BY the number of members that have LIMIT. `limits` lists them as 'LIMITxCOUNT,'.
local function count(name, limit, by)
  local found
  name.limits = string.gsub(name.limits, '(%d+)x(%d+),', function(each, many)
    if each ~= limit then return nil end
    found = true
    return many + by > 0 and each .. 'x' .. many + by .. ',' or ''
  end)
  if not found and by > 0 then name.limits = name.limits .. limit .. 'x1,' end
end

local function enroll(key, name, id, ends, ttl, limit, units, token, details)
  call('ZADD', key .. ':line', format('-%.0f', ends), id)
  local slots = take(name, tonumber(units))
  count(name, limit, 1)
  call('HSET', key .. ':claim', id, table.concat({ 'h', name.gen, token, ttl, limit, slots, details }, ' '))
  name.next = nil
  if ends > name.ends then name.ends = ends end
  if tonumber(ttl) > tonumber(name.ttl) then name.ttl = ttl end
  extend(key, QUEUE, name.ends - now) -- a waiter that was passed is in the last two only
  return slots
end

-- Reads the token, ttl, limit, slots and details of a member from its entry.
local function memberOf(name, entry)
  if not name.gen or name.lost then return nil end
  local gen, token, ttl, limit, slots, details = match(entry or '', '^h (%d+) (%d+) (%d+) (%d+) ([^ ]+) (.*)$')
  if gen == name.gen then return token, ttl, limit, slots, details end
end

-- Reads the channel, arrival, round trip, limit, units and details of a waiter from its entry.
local function waiterOf(entry)
  return match(entry or '', '^w ([^ ]+) (%d+) (%d+) (%d+) (%d+) (.*)$')
end

local function entryOf(key, name, id) return (name.gen or name.line == '1') and call('HGET', key .. ':claim', id) end

-- Removes all members of a group.
local function clear(key)
  repeat
    local ids = call('ZRANGEBYSCORE', key .. ':line', '-inf', '(0', 'LIMIT', 0, 1000)
    if #ids > 0 then
      call('ZREM', key .. ':line', unpack(ids))
      call('HDEL', key .. ':claim', unpack(ids))
    end
  until #ids < 1000
end

-- Begins a group, with the holder as its first member if there is one. What an earlier group left does not count.
local function gather(key, name, gen)
  call('HSET', key .. ':claim', '#', gen)
  clear(key)
  local id, details = match(name.rest, '^([^ ]+) (.-) *$')
  local limit, units = match(name.share, '(%d+)/(%d+)')
  local ends, held = name.ends, name.state == 'held'
  name.gen, name.since, name.used, name.limits, name.map = gen, held and 0 or ends, 0, '', ''
  name.state, name.share = 'many', ''
  if held then enroll(key, name, id, ends, name.ttl, limit, units, name.token, details)
  else name.ends, name.ttl = 0, '0' end
end

local function change(key, name)
  freed[key] = true
  if name.gen then name.since = now
  elseif name.state == 'free' then name.ends = now end
end

-- Writes a group that has changed. Without members the name is free.
local function settle(key, name)
  if name.limits == '' then
    call('HDEL', key .. ':claim', '#')
    name.state, name.ends, name.ttl, name.rest = 'free', now, '0', '- []'
    name.gen, name.since, name.lost = nil, nil, nil
  end
  write(key, name)
end

-- Removes members from a group.
local function drop(key, name, ids)
  for _, entry in ipairs(call('HMGET', key .. ':claim', unpack(ids))) do
    local _, _, limit, slots = memberOf(name, entry)
    for slot in string.gmatch(slots or '', '%d+') do
      local at = math.floor(slot / 4) + 1
      name.map = sub(name.map, 1, at - 1) .. format('%x', tonumber(sub(name.map, at, at), 16) - 2 ^ (slot % 4)) .. sub(name.map, at + 1)
      name.used = name.used - 1
    end
    if limit then count(name, limit, -1) end
  end
  call('ZREM', key .. ':line', unpack(ids))
  call('HDEL', key .. ':claim', unpack(ids))
  name.next = nil
  change(key, name)
end

-- Ends the leases of a whole group.
local function disband(key, name)
  clear(key)
  change(key, name)
  name.limits = ''
  settle(key, name)
end

-- A lease with more time left than its ttl was written before the clock was set back. It is shortened to its ttl.
local function shorten(key, name)
  mayGrow(key)
  local members = call('ZRANGEBYSCORE', key .. ':line', '-inf', format('(-%.0f', now), 'WITHSCORES')
  for at = 1, #members, 2 do
    local _, ttl = memberOf(name, call('HGET', key .. ':claim', members[at]))
    if ttl and -members[at + 1] > now + ttl then call('ZADD', key .. ':line', format('-%.0f', now + ttl), members[at]) end
  end
  mark(key, name)
end

-- Answers when the first lease of a member ends, and whose it is.
local function nextOf(key, name)
  if not name.next then
    local member = call('ZREVRANGEBYSCORE', key .. ':line', '(0', '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
    -- Without its members it counts as held until the latest of them would have ended.
    name.lost = name.lost or not member[1] or call('HGET', key .. ':claim', '#') ~= name.gen
    name.first, name.next = member[1], name.lost and name.ends or -member[2]
  end
  return name.next, name.first
end

-- Reads a group, and removes the members whose leases have ended.
local function openGroup(key, name)
  local gen, since, used, limits, map = match(name.rest, '^(%d+) (%d+) (%d+) ([^ ]+) (%x+)')
  if not gen then error('FORMAT 1') end
  name.gen, name.since, name.used, name.limits, name.map = gen, math.min(since, now), tonumber(used), limits, map
  if name.ends > now then need(key, { ':line', ':claim' }) end
  if name.isBack then shorten(key, name) end
  if tonumber(since) > now then write(key, name) end
  if name.ends <= now then disband(key, name)
  elseif nextOf(key, name) <= now then
    drop(key, name, call('ZRANGEBYSCORE', key .. ':line', -now, '(0', 'LIMIT', 0, 1000))
    settle(key, name)
  end
end
