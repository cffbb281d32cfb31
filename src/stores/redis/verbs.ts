import { CLAIMS, rules } from './rules.ts'
import { GONE, type Script, scriptOf } from './script.ts'
import { state } from './state.ts'

/** The script that one server, or one node of a cluster, runs for this store. */
export const script: Script = scriptOf({
  touches: {
    acquire: [...CLAIMS, GONE],
    release: [...CLAIMS, GONE],
    renewShared: CLAIMS,
    annotateShared: CLAIMS,
    break: CLAIMS,
    inspect: CLAIMS,
    keep: CLAIMS,
  },
  first: 4,
  // This comes after the grants: a server that is out of memory would refuse it as the first write of a call.
  last: `if isHigher then redis.pcall('SET', KEYS[#KEYS], format('%.0f', highest)) end
for key in pairs(freed) do seconds[key] = true end
for key in pairs(seconds) do pcall(rules().wake, key) end
`,
  verbs: `${state}
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

-- The slots of a claim that holds alone, if it would share them.
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

-- A claim gets a free name that nobody waits for.
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

-- A replica may lack what its master has. It refuses this write, which changes nothing. So does a full server.
local function gone(key)
  local refused = redis.pcall('SETRANGE', key, 0, '')
  if type(refused) == 'table' and match(refused.err, 'READONLY') then error(refused.err) end
  return '0'
end

-- The state of a name if this claim holds it alone. Then no other key counts.
local function alone(key, id)
  local name = names[key] or read(key)
  return name.state == 'held' and name.ends > now and isOf(id, name.rest) and name
end

-- The functions for several holders and for waiters are created when they are needed: that takes longer than most requests.
local made
local function rules()
  if made then return made end
${rules}
  return made
end

-- QUEUES: '0', or '1' with the round trip of the claim behind it if that of the connection does not count. REST: 'LIMIT
-- UNITS DETAILS', or the details of a claim that holds alone.
local function acquire(key, id, ttl, life, queues, rest)
  local name = names[key] or read(key)
  local held = name.state == 'held' and name.ends > now
  if name.line == '1' or name.gen or name.state == 'many' then return rules().acquire(key, id, ttl, life, queues, rest) end
  if held and isOf(id, name.rest) then
    -- A stale copy of the request must not shorten what a renewal has extended since.
    if name.ends - now <= tonumber(ttl) then prolong(key, name, ttl, life) end
    return '+' .. name.token .. slotsOf(name)
  end
  if held and (queues ~= '0' or name.share ~= '') then return rules().acquire(key, id, ttl, life, queues, rest) end
  -- To answer that the name is held takes no other key. In a slot that moves, only the keys on this node can be read.
  if held then return format('-%.0f 0 %.0f %s %s', name.ends, name.ends, name.token, match(name.rest, ' (.*)$')) end
  if call('GET', key .. ':gone:' .. id) then return 'x' end
  local limit, units, details = '1', '1', rest
  if sub(rest, 1, 1) ~= '[' then limit, units, details = match(rest, '^(%d+) (%d+) (.*)$') end
  return grantAlone(key, name, id, ttl, life, limit, units, details)
end

local function release(key, id, memory)
  local name = names[key] or read(key)
  if name.line == '1' or name.gen or name.state == 'many' then return rules().release(key, id, memory) end
  if name.state == 'held' and name.ends > now and isOf(id, name.rest) then
    if not forget(key, name) then
      name.state, name.ends = 'free', now
      mark(key, name)
    end
    return '1'
  end
  call('SET', key .. ':gone:' .. id, '1', 'PX', memory)
  return '0'
end

local function renew(key, id, ttl, life)
  local name = alone(key, id)
  if not name then return gone(key) end
  prolong(key, name, ttl, life)
  return '+' .. name.token .. slotsOf(name)
end

local function annotate(key, id, _, _, _, details)
  local name = alone(key, id)
  if not name then return gone(key) end
  name.rest = id .. ' ' .. details
  write(key, name)
  return '1'
end

local others = { __index = function(_, verb) return rules()[verb] end }
local verbs = setmetatable({ acquire = acquire, renew = renew, annotate = annotate, release = release }, others)
`,
})
