-- The leases of claims that share a name.

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

-- Describes the last holder: when its lease ends, its token, perhaps with limit and slots, and its details.
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
