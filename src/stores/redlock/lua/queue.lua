-- The queue of the waiters that this node notifies.

-- The milliseconds after which a waiter that has AHEAD waiters before it asks for a free name.
local function turnAfter(ahead) return math.min(ahead * TURN, FIRST_TURNS + ahead * SHORT_TURN) end

function made.leave(key, ids)
  call('ZREM', key .. ':lapse', unpack(ids))
  call('HDEL', key .. ':waiter', unpack(ids))
  return call('ZREM', key .. ':line', unpack(ids)) > 0
end

-- Removes lapsed waiters from the queue, once in a call: all of a call has one time.
local lapsed = {}
function made.lapse(key)
  if lapsed[key] then return end
  lapsed[key] = true
  local ids = call('ZRANGEBYSCORE', key .. ':lapse', '-inf', endOf('0'), 'LIMIT', '0', '1000')
  if #ids > 0 then made.leave(key, ids) end
end

-- The keys of a queue last a second longer than the last waiter, so that all three exist while there is one.
local function extend(key, lifetime)
  if call('PTTL', key .. ':lapse') < lifetime + 1000 then
    for _, kind in ipairs({ ':line', ':lapse', ':waiter' }) do call('PEXPIRE', key .. kind, lifetime + 2000) end
  end
end

function made.queue(key, id, isNew, ttl, details)
  local lifetime = math.max(ttl, SHORTEST_POSITION)
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
function made.wake(key)
  made.lapse(key)
  local first, deaf = nil, {}
  for from = 0, 10, 10 do -- the first ten, then those up to the thousandth
    for at, id in ipairs(call('ZRANGE', key .. ':line', from, from * 99 + 9)) do
      local place = from + at
      local target, asked = match(call('HGET', key .. ':waiter', id) or '- 0 ', '^([^ ]+) ([^ ]+) ')
      if target ~= '-' and not deaf[target] and target ~= first then
        local message = first and id .. ' ' .. turnAfter(place - 1) or id
        if (tell(target, message) or 1) > 0 then
          if first or math.abs(now - asked) < TURN then return end
          first = target
        else
          deaf[target] = true
        end
      end
    end
    if first or not next(deaf) then return end
  end
end
