-- The value of a name, which contains the claim that holds the name alone.

-- The names of which slots were freed or which have another first waiter, and the names that have another second waiter.
local freed, seconds = {}, {}

local function isOf(id, text) return sub(text, 1, #id + 1) == id .. ' ' end

-- Formats a time in 13 digits. Many requests of a call have the same time.
local stamps = {}
local function stamp(at)
  local text = stamps[at]
  if not text then
    text = format('%013.0f', at)
    stamps[at] = text
  end
  return text
end

-- Writes the start of a value in place, at a fixed width: its state, the time of that, and whether there is a queue.
local function mark(key, name) put(key, 'SETRANGE', key, '2', stamp(name.ends) .. ' ' .. name.state .. ' ' .. name.line) end

local function write(key, name)
  local rest = name.rest
  if name.gen then rest = format('%s %.0f %d %s %s', name.gen, name.since, name.used, name.limits, name.map) end
  local text = '1 ' .. stamp(name.ends) .. ' ' .. name.state .. ' ' .. name.line .. ' ' .. name.token .. ' ' .. name.ttl .. name.share .. ' ' .. rest
  if name.size > 0 then put(key, 'SETRANGE', key, '0', text .. rep(' ', name.size - #text)) else put(key, 'SET', key, text) end
  name.size = math.max(name.size, #text)
end

-- Reads the value of a name: its state (`free`, `held` by one claim, or held by `many`), the time when it ends or when it
-- became free, whether there is a queue ('1'), the last token, the ttl of the holder, and '/LIMIT/UNITS' of a claim that
-- holds alone and would share.
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
