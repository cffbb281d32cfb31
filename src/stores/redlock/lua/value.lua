-- The value of a name, which is the vote of this node.

-- Reads a value. `known` has the values that this call has read and not written since, or false if there is none. GET refuses
-- a key of another type, which MGET reads as missing.
local known = {}
local function get(key)
  if known[key] == nil then known[key] = call('GET', key) end
  return known[key]
end

local function write(key, value, token, life, state, rest)
  local new = '1 ' .. state .. ' ' .. token .. ' ' .. rest
  if value then put(key, 'SETRANGE', key, '0', new .. rep(' ', #value - #new)) else put(key, 'SET', key, new) end
  known[key] = nil
  remember(key, token, life)
end

-- Writes the state of a name in place, at a fixed width: when its lease ends, and whether there is a queue.
local function mark(key, state)
  put(key, 'SETRANGE', key, '2', state)
  known[key] = nil
end

-- Parses a value. Answers whether it is held, the time when that ends or when it became free, whether there is a queue ('1'),
-- the last token, the ttl of the current or last holder, and where in the value the id and details begin.
local function parse(key, value)
  if not value then return false, 0, '0', '0' end
  local ends, state, line, token, ttl, start = match(value, '^1 ([^ ]+) ([^ ]+) ([01]) (%d+) ([^ ]+) ()')
  if not token then error('FORMAT ' .. match(value, '^[^ ]*')) end
  local held = state == 'held'
  local most = held and tonumber(ttl) or 0
  ends = tonumber(ends)
  -- More than the ttl remains only after the clock was set back. The lease is then shortened to its ttl.
  if ends - now > most then
    ends = now + most
    mark(key, format('%013.0f %s %s', ends, state, line))
  end
  return held and now < ends, ends, line, token, ttl, start
end

local function isOf(id, value, start) return sub(value, start, start + #id) == id .. ' ' end

-- The attempt that got the vote, and the details of the claim.
local function attemptOf(value, start) return match(value, ' (%d+) (.*)$', start) end
local function idOf(value, start) return match(value, '^[^ ]+', start) end
