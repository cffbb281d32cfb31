import { TURN } from '../../contract/time.ts'
import { positionLifetime } from '../shared/rules/name.ts'

/** The suffixes of the keys of those who hold a name together, and of its queue. */
export const CLAIMS: readonly string[] = [':line', ':lapse', ':claim']

/**
 * Lua that knows the state of a name, and who is next: the rules of `Name` in `shared/rules/name.ts`.
 *
 * A claim that holds alone is in the value of the name. Several are a group: members of `:line`, with minus the end of the
 * lease as the score. The waiters have the number of their arrival there. A waiter that was passed is only in `:lapse` and
 * `:claim`, until it asks again.
 */
export const state: string = `
-- Names of which slots were freed, or which have another first waiter; and those with another second one.
local freed, seconds = {}, {}

local function isOf(id, text) return sub(text, 1, #id + 1) == id .. ' ' end

-- Writes the start of a value in place, at a fixed width: until or since when it is held or free, and if there is a queue.
local function mark(key, name) put(key, 'SETRANGE', key, '2', format('%013.0f %s %s', name.ends, name.state, name.line)) end

local function write(key, name)
  local rest = name.rest
  if name.gen then rest = format('%s %.0f %d %s %s', name.gen, name.since, name.used, name.limits, name.map) end
  local text = format('1 %013.0f %s %s %s %s%s %s', name.ends, name.state, name.line, name.token, name.ttl, name.share, rest)
  if name.size > 0 then put(key, 'SETRANGE', key, '0', text .. rep(' ', name.size - #text)) else put(key, 'SET', key, text) end
  name.size = math.max(name.size, #text)
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
    at = string.find(map, '[^f]', at) or #map + 1
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

-- How many members have each limit: 'LIMITxCOUNT,'.
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
  extend(key, { ':line', ':claim' }, name.ends - now)
  return slots
end

-- The token, ttl, limit, slots and details of a member, from its entry.
local function memberOf(name, entry)
  if not name.gen or name.lost then return nil end
  local gen, token, ttl, limit, slots, details = match(entry or '', '^h (%d+) (%d+) (%d+) (%d+) ([^ ]+) (.*)$')
  if gen == name.gen then return token, ttl, limit, slots, details end
end

-- The channel, arrival, round trip, limit, units and details of a waiter, from its entry.
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
  local id, details = match(name.rest, '^([^ ]+) (.*)$')
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

-- The member whose lease ends first, and when.
local function nextOf(key, name)
  if not name.next then
    local member = call('ZREVRANGEBYSCORE', key .. ':line', '(0', '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
    -- Without its members it counts as held until the latest of them would have ended.
    name.lost = name.lost or not member[1] or call('HGET', key .. ':claim', '#') ~= name.gen
    name.first, name.next = member[1], name.lost and name.ends or -member[2]
  end
  return name.next, name.first
end

-- Reads the members of a group as far as needed: those that have ended leave.
local function openGroup(key, name)
  local gen, since, used, limits, map = match(name.rest, '^(%d+) (%d+) (%d+) ([^ ]+) (%x+)')
  if not gen then error('FORMAT 1') end
  name.gen, name.since, name.used, name.limits, name.map = gen, math.min(since, now), tonumber(used), limits, map
  if name.isBack then shorten(key, name) end
  if name.ends <= now then disband(key, name)
  elseif nextOf(key, name) <= now then
    drop(key, name, call('ZRANGEBYSCORE', key .. ':line', -now, '(0', 'LIMIT', 0, 1000))
    settle(key, name)
  end
end

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

-- What the value of a name says: is it \`free\`, \`held\` by one claim or by \`many\`; until when, or since when is it free; is
-- there a queue ('1'); the last token; the ttl of the holder, and '/LIMIT/UNITS' of one that holds alone and would share.
local function read(key)
  local value = call('GET', key)
  if not value then return { state = 'free', ends = 0, line = '0', token = '0', ttl = '0', share = '', rest = '- []', size = 0 } end
  local ends, state, line, token, ttl, share, rest = match(value, '^1 ([^ ]+) (%a+) ([01]) (%d+) (%d+)([^ ]*) (.*)$')
  if not rest then error('FORMAT ' .. match(value, '^[^ ]*')) end
  local name = { state = state, ends = tonumber(ends), line = line, token = token, ttl = ttl, share = share, rest = rest, size = #value }
  local most = state == 'free' and now or now + ttl
  if name.ends > most then -- the clock was set back
    name.ends, name.isBack = most, true
    if state ~= 'many' then mark(key, name) end
  end
  return name
end

-- The same, without what has ended. All of a call has one time, so this is done once.
local function open(key)
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
  if name.line == '1' then
    local ids = call('ZRANGEBYSCORE', key .. ':lapse', '-inf', now, 'LIMIT', 0, 1000)
    if #ids > 0 then withdraw(key, name, ids) end
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

-- When the first waiter may be passed: after its grace period, if it fits. And the first two.
local function passableAt(key, name)
  local first, second = unpack(firsts(key))
  local _, _, roundTrip, limit, units = waiterOf(first and call('HGET', key .. ':claim', first))
  if not limit or not fits(name, limit, units) then return math.huge, first, second end
  return (name.since or name.ends) + ${TURN} + roundTrip, first, second
end

-- When a claim with so many waiters AHEAD may be granted at the earliest, if nothing is freed.
local function soonest(key, name, ahead)
  local at = name.state == 'held' and name.ends or name.gen and nextOf(key, name) or math.huge
  if ahead == 0 then return at end
  if ahead > 1 then return math.min(at, call('ZRANGE', key .. ':lapse', 0, 0, 'WITHSCORES')[2] or now) end
  local passable, first = passableAt(key, name)
  return math.min(at, passable, call('ZSCORE', key .. ':lapse', first) or now)
end

-- A claim joins the queue, or keeps its position. ARRIVAL: where it was.
local function join(key, name, id, arrival, ttl, roundTrip, limit, units, details)
  local lifetime = math.min(math.max(ttl, ${positionLifetime(0)}), ${positionLifetime(Number.POSITIVE_INFINITY)})
  if arrival then
    mayGrow(key)
  else
    local last = call('ZREVRANGE', key .. ':line', 0, 0, 'WITHSCORES')
    arrival = format('%.0f', math.max((last[2] or 0) + 1, floor))
  end
  call('ZADD', key .. ':line', arrival, id)
  call('ZADD', key .. ':lapse', endOf(lifetime), id)
  call('HSET', key .. ':claim', id, table.concat({ 'w', channel, arrival, roundTrip, limit, units, details }, ' '))
  extend(key, { ':line', ':lapse', ':claim' }, lifetime)
  if name.line == '1' then return end
  name.line = '1'
  if name.share ~= '' then gather(key, name, name.token) end
  if name.gen then write(key, name) else mark(key, name) end
end

-- Wakes the first waiter if it fits, and tells the second to come after its grace period.
local function wake(key)
  local name = open(key)
  if name.line == '0' then return end
  local at, first, second = passableAt(key, name)
  local function hint(id, message)
    local target = waiterOf(call('HGET', key .. ':claim', id))
    if target and target ~= '-' then tell(target, message) end
  end
  if at == math.huge then return end
  if freed[key] then hint(first, first) end
  if second then hint(second, second .. ' ' .. format('%.0f', math.max(at - now, 0))) end
end
`
