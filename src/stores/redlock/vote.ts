import { TURN } from '../../contract/time.ts'
import { FIRST_TURNS, SHORT_TURN } from '../quorum/queue.ts'

/** The shortest time in milliseconds for which a waiter that stops asking keeps its position. */
const SHORTEST_POSITION = 1_000

/** The suffixes of the keys of a queue. */
export const LINE: readonly string[] = [':line', ':lapse', ':waiter']

/** Lua that reads and writes the vote of a node for a name, and the queue of the waiters that it notifies. */
export const vote: string = `
-- Milliseconds after which a waiter asks for a free name, by the number of waiters ahead.
local function turnAfter(ahead) return math.min(ahead * ${TURN}, ${FIRST_TURNS} + ahead * ${SHORT_TURN}) end

-- The values that this call has read and not written since. False: there is none. GET refuses a key of another type, which
-- MGET reads as missing.
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

-- Reads a name's value: is it held; until when, or since when is it free; is there a queue ('1'); the last token; the ttl
-- of the current or last holder; and where in the value the id and details begin.
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

-- Replaces the details that begin at START, and leaves everything before them as it is.
local function describe(key, value, start, details)
  put(key, 'SETRANGE', key, start - 1, details .. rep(' ', #value + 1 - start - #details))
  known[key] = nil
end

local function isOf(id, value, start) return sub(value, start, start + #id) == id .. ' ' end
local function detailsOf(value, start) return match(value, ' (.*)$', start) end

local function leave(key, ids)
  call('ZREM', key .. ':lapse', unpack(ids))
  call('HDEL', key .. ':waiter', unpack(ids))
  return call('ZREM', key .. ':line', unpack(ids)) > 0
end

-- Removes lapsed waiters from the queue, once in a call: all of a call has one time.
local lapsed = {}
local function lapse(key)
  if lapsed[key] then return end
  lapsed[key] = true
  local ids = call('ZRANGEBYSCORE', key .. ':lapse', '-inf', endOf('0'), 'LIMIT', '0', '1000')
  if #ids > 0 then leave(key, ids) end
end

-- The keys of a queue last a second longer than the last waiter, so that all three exist while there is one.
local function extend(key, lifetime)
  if call('PTTL', key .. ':lapse') < lifetime + 1000 then
    for _, kind in ipairs({ ':line', ':lapse', ':waiter' }) do call('PEXPIRE', key .. kind, lifetime + 2000) end
  end
end

local function queue(key, id, isNew, ttl, details)
  local lifetime = math.max(ttl, ${SHORTEST_POSITION})
  if isNew then
    local last = call('ZREVRANGE', key .. ':line', '0', '0', 'WITHSCORES')
    call('ZADD', key .. ':line', (last[2] or 0) + 1, id)
  else
    mayGrow(key)
  end
  call('ZADD', key .. ':lapse', endOf(lifetime), id)
  call('HSET', key .. ':waiter', id, channel .. ' ' .. endOf('0') .. ' 0 ' .. details)
  extend(key, lifetime)
end

-- Wakes the first waiter whose process is subscribed. One that has not asked recently may be paused (it asks in the future
-- after the clock was set back), so the first waiter of another process is also told to ask, after the grace periods before
-- it. If no message to the first ten was received, their processes have died, perhaps with hundreds of waiters.
local function wake(key)
  lapse(key)
  local first, deaf = nil, {}
  for from = 0, 10, 10 do -- the first ten, then those up to the thousandth
    for at, id in ipairs(call('ZRANGE', key .. ':line', from, from * 99 + 9)) do
      local place = from + at
      local target, asked = match(call('HGET', key .. ':waiter', id) or '- 0 ', '^([^ ]+) ([^ ]+) ')
      if target ~= '-' and not deaf[target] and target ~= first then
        local message = first and id .. ' ' .. turnAfter(place - 1) or id
        if (tell(target, message) or 1) > 0 then
          if first or math.abs(now - asked) < ${TURN} then return end
          first = target
        else
          deaf[target] = true
        end
      end
    end
    if first or not next(deaf) then return end
  end
end
`
