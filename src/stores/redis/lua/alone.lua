-- A claim that holds a name alone. No other key of the name counts then.

-- The slots of a claim that holds alone, and when its lease ends, if the claim would share.
local function slotsOf(name)
  if name.share == '' then return '' end
  local slots = {}
  for slot = 1, match(name.share, '/%d+/(%d+)') do slots[slot] = slot - 1 end
  return format(' %s %.0f', table.concat(slots, ','), name.ends)
end

-- Extends the lease of a claim that holds alone, from now.
local function prolong(key, name, ttl, life)
  name.ends = now + ttl
  if name.ttl == ttl then mark(key, name) else
    name.ttl = ttl
    write(key, name)
  end
  remember(key, name.token, life)
end

-- Grants a free name that nobody waits for.
local function grantAlone(key, name, id, ttl, life, limit, units, details)
  local token = nextToken(name.token)
  name.state, name.ends, name.token, name.ttl = 'held', now + ttl, token, ttl
  name.share, name.rest = limit == '1' and '' or '/' .. limit .. '/' .. units, id .. ' ' .. details
  write(key, name)
  remember(key, token, life)
  return '+' .. token .. slotsOf(name)
end

-- Deletes a free name, unless it is remembered for its waiters or its token.
local function forget(key, name)
  if name.line == '1' or tonumber(name.token) > counter() then return false end
  put(key, 'PEXPIRE', key, '0')
  names[key], freed[key] = nil, nil
  return true
end

-- Answers that there is no such lease. A replica may lack what its master has: it refuses this write, which changes nothing.
-- A server that is out of memory refuses it too.
local function gone(key)
  local refused = redis.pcall('SETRANGE', key, 0, '')
  if type(refused) == 'table' and match(refused.err, 'READONLY') then error(refused.err) end
  return '0'
end

-- The state of a name if this claim holds it alone.
local function alone(key, id)
  local name = names[key] or read(key)
  return name.state == 'held' and name.ends > now and isOf(id, name.rest) and name
end
