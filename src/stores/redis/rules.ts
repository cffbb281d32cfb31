import { group } from './group.ts'
import { name } from './name.ts'
import { waiting } from './waiting.ts'

/** The suffixes of the keys of claims that share a name, and of its queue. */
export const CLAIMS: readonly string[] = [':line', ':lapse', ':claim']

/** Lua for requests about a name that several claims hold or wait for. It leaves the table `made`. */
export const rules: string = `${group}${name}
-- Extends the lease of a member.
local function prolongMember(key, name, id, ends, ttl, life, token, granted, limit, slots, details)
  mayGrow(key)
  call('ZADD', key .. ':line', format('-%.0f', ends), id)
  if granted ~= ttl then call('HSET', key .. ':claim', id, table.concat({ 'h', name.gen, token, ttl, limit, slots, details }, ' ')) end
  name.next = nil
  if ends > name.ends or tonumber(ttl) > tonumber(name.ttl) then
    name.ends = math.max(ends, name.ends)
    if tonumber(ttl) > tonumber(name.ttl) then
      name.ttl = ttl
      write(key, name)
    else mark(key, name) end
    remember(key, name.token, name.ends - now + life - ttl)
    extend(key, { ':line', ':claim' }, name.ends - now)
  end
end

local function grant(key, name, id, ttl, life, limit, units, details)
  if name.state == 'free' and (limit == '1' or name.line == '0') then
    return grantAlone(key, name, id, ttl, life, limit, units, details)
  end
  local token = nextToken(name.token)
  if not name.gen then gather(key, name, name.state == 'held' and name.token or token) end
  name.token = token
  local slots = enroll(key, name, id, now + ttl, ttl, limit, units, token, details)
  write(key, name)
  remember(key, token, name.ends - now + life - ttl)
  return format('+%s %s %.0f', token, slots, nextOf(key, name))
end

-- When the lease of the last holder ends, its token, perhaps with limit and slots, and its details.
local function holderOf(key, name)
  if name.state == 'held' then
    local limit = match(name.share, '%d+')
    local about = limit and '/' .. limit .. '/' .. match(slotsOf(name), '[^ ]+') or ''
    return format('%.0f %s%s %s', name.ends, name.token, about, match(name.rest, ' (.*)$'))
  end
  if not name.gen then return '' end
  local last = call('ZRANGE', key .. ':line', 0, 0, 'WITHSCORES')
  local token, _, limit, slots, details = memberOf(name, last[1] and call('HGET', key .. ':claim', last[1]))
  if not token then return format('%.0f %s ["",""]', name.ends, name.token) end
  return format('%.0f %s/%s/%s %s', -last[2], token, limit, slots, details)
end

local function acquireShared(key, id, ttl, life, queues, rest)
  local name = open(key)
  if name.state == 'held' and isOf(id, name.rest) then
    -- A stale copy of the request must not shorten what a renewal has extended since.
    if name.ends - now <= tonumber(ttl) then prolong(key, name, ttl, life) end
    return '+' .. name.token .. slotsOf(name)
  end
  local limit, units, details = match(rest, '^(%d+) (%d+) (.*)$')
  if not limit then limit, units, details = '1', '1', rest end
  if call('GET', key .. ':gone:' .. id) then return 'x' end
  local entry = entryOf(key, name, id)
  local token, granted, own, slots, described = memberOf(name, entry)
  if token then
    local ends = -call('ZSCORE', key .. ':line', id)
    if ends - now <= tonumber(ttl) then
      prolongMember(key, name, id, now + ttl, ttl, life, token, granted, own, slots, described)
    end
    return format('+%s %s %.0f', token, slots, nextOf(key, name))
  end
  local ahead, at, passed = 0, 0, nil
  local _, arrival, _, before, wanted = waiterOf(entry)
  if arrival then limit, units = before, wanted end
  if name.line == '1' then ahead = call('ZCOUNT', key .. ':line', '(0', arrival and '(' .. arrival or '+inf') end
  local isFree = fits(name, limit, units)
  if isFree and ahead == 1 then at, passed = passableAt(key, name) end
  if isFree and ahead <= 1 and now >= at then
    if arrival then
      leave(key, { id })
      change(key, name) -- so that the next one is woken, and has its grace period from now
    end
    if passed then call('ZREM', key .. ':line', passed) end
    if name.line == '1' and call('ZCARD', key .. ':lapse') == 0 then name.line = '0' end
    return grant(key, name, id, ttl, life, limit, units, details)
  end
  if queues ~= '0' then join(key, name, id, arrival, ttl, tonumber(sub(queues, 2)) or ROUND_TRIP, limit, units, details) end
  return format('-%.0f %d %s', soonest(key, name, ahead), ahead, holderOf(key, name))
end

local function releaseShared(key, id, memory)
  local name = open(key)
  if name.state == 'held' and isOf(id, name.rest) then
    if forget(key, name) then return '1' end
    name.state = 'free'
    change(key, name)
    mark(key, name)
    return '1'
  end
  local entry = entryOf(key, name, id)
  if memberOf(name, entry) then
    drop(key, name, { id })
    settle(key, name)
    if not name.gen then forget(key, name) end
  elseif waiterOf(entry) then withdraw(key, name, { id })
  else
    call('SET', key .. ':gone:' .. id, '1', 'PX', memory)
    return '0'
  end
  return '1'
end

local function renewShared(key, id, ttl, life)
  local name = alone(key, id)
  if name then
    prolong(key, name, ttl, life)
    return '+' .. name.token .. slotsOf(name)
  end
  name = open(key)
  local token, granted, limit, slots, details = memberOf(name, entryOf(key, name, id))
  if not token then return gone(key) end
  prolongMember(key, name, id, now + ttl, ttl, life, token, granted, limit, slots, details)
  return format('+%s %s %.0f', token, slots, nextOf(key, name))
end

local function annotateShared(key, id, _, _, _, details)
  local name = alone(key, id)
  if name then
    name.rest = id .. ' ' .. details
    write(key, name)
    return '1'
  end
  name = open(key)
  local token, ttl, limit, slots = memberOf(name, entryOf(key, name, id))
  if not token then return gone(key) end
  mayGrow(key)
  call('HSET', key .. ':claim', id, table.concat({ 'h', name.gen, token, ttl, limit, slots, details }, ' '))
  return '1'
end

-- OF: 'TOKEN SLOT' of the lease to end; '-': any.
local function breakLease(key, _, _, life, _, of)
  local name = open(key)
  local token, slot = match(of, '^(%S+) (%S+)$')
  local function isMeant(each, slots)
    return (token == '-' or token == each) and (slot == '-' or string.find(',' .. slots .. ',', ',' .. slot .. ',', 1, true))
  end
  local ended = {}
  if name.state == 'held' then
    local slots = match(slotsOf(name), '[^ ]+') or '0'
    if isMeant(name.token, slots) then ended[1] = '' end
  elseif name.gen and of == '- -' then ended[1] = ''
  elseif name.gen then
    for _, id in ipairs(call('ZRANGEBYSCORE', key .. ':line', '-inf', '(0')) do
      local each, _, _, slots = memberOf(name, call('HGET', key .. ':claim', id))
      if each and isMeant(each, slots) then ended[1] = id end
    end
  end
  if #ended == 0 then return gone(key) end
  -- If no higher token is left, the leases end all the same.
  local fine, new = pcall(nextToken, name.token)
  if fine then name.token = new end
  if name.state == 'held' then
    name.state = 'free'
    change(key, name)
    write(key, name)
  elseif ended[1] == '' then disband(key, name)
  else
    drop(key, name, ended)
    settle(key, name)
  end
  remember(key, name.token, name.gen and name.ends - now + life or life)
  if not fine then error(new .. '; its lease was ended', 0) end
  return '+' .. name.token
end

${waiting}
made = {
  acquire = acquireShared, renewShared = renewShared, annotateShared = annotateShared, release = releaseShared,
  ['break'] = breakLease, inspect = inspect, keep = keep, wake = wake
}
`
