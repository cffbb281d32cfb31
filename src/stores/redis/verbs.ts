import { type Script, scriptOf } from './script.ts'

/** What one server, or one node of a cluster, does for this store. */
export const script: Script = scriptOf({
  verbs: `
-- The same claim again, from now.
local function prolong(key, value, line, token, granted, start, ttl, life)
  local state = endOf(ttl) .. ' held ' .. line
  if granted ~= ttl then return write(key, value, token, life, state, ttl .. ' ' .. sub(value, start)) end
  mark(key, state)
  remember(key, token, life)
end

local function acquire(key, id, ttl, life, queues, details)
  local found = call('MGET', key, key .. ':gone:' .. id)
  local value = found[1]
  if found[2] then return 'x' end
  local held, ends, line, token, granted, start = parse(key, value)
  if held and isOf(id, value, start) then
    -- A late copy of the request must not shorten what was renewed for longer since.
    if ends - now <= tonumber(ttl) then prolong(key, value, line, token, granted, start, ttl, life) end
    return '+' .. token
  end
  local ahead, place = 0, false
  if line == '1' then
    lapse(key)
    place = call('ZRANK', key .. ':line', id)
    ahead = place or call('ZCARD', key .. ':line')
  end
  if not held and now >= ends + ahead * TURN then
    if place then leave(key, { id }) end
    if line == '1' and call('ZCARD', key .. ':line') == 0 then line = '0' end
    token = nextToken(token)
    write(key, value, token, life, endOf(ttl) .. ' held ' .. line, ttl .. ' ' .. id .. ' ' .. details)
    return '+' .. token
  end
  if queues == '1' then
    queue(key, id, not place, ttl, details)
    if line == '0' then mark(key, format('%013.0f held 1', ends)) end
  end
  return '-' .. ends .. ' ' .. ahead .. ' ' .. (held and token .. ' ' .. detailsOf(value, start) or '')
end

local function renew(key, id, ttl, life)
  local value = call('GET', key)
  local held, _, line, token, granted, start = parse(key, value)
  if not held or not isOf(id, value, start) then return '0' end
  prolong(key, value, line, token, granted, start, ttl, life)
  return '+' .. token
end

local function annotate(key, id, _, _, _, details)
  local value = call('GET', key)
  local held, _, _, _, _, start = parse(key, value)
  if not held or not isOf(id, value, start) then return '0' end
  describe(key, value, start + #id + 1, details)
  return '1'
end

local function release(key, id, memory)
  local value = call('GET', key)
  local held, _, line, _, _, start = parse(key, value)
  local own = held and isOf(id, value, start)
  local waited = not own and line == '1' and leave(key, { id })
  if own then mark(key, endOf('0') .. ' free ' .. line) end
  if line == '1' and (own or waited and not held) then wake(key) end
  if own or waited then return '1' end
  call('SET', key .. ':gone:' .. id, '1', 'PX', memory)
  return '0'
end

local function breakLease(key, _, memory, _, _, by)
  local value = call('GET', key)
  local held, _, line, token, ttl, start = parse(key, value)
  if not held then return '0' end
  token = nextToken(token)
  write(key, value, token, MEMORY, endOf('0') .. ' free ' .. line, ttl .. ' ' .. sub(value, start))
  call('SET', key .. ':broken', '1 ' .. token .. ' ' .. endOf('0') .. ' ' .. by, 'PX', memory)
  if line == '1' then wake(key) end
  return '+' .. token
end

local function inspect(key)
  local value = call('GET', key)
  local held, ends, line, token, _, start = parse(key, value)
  local found = held and { token .. ' ' .. detailsOf(value, start), ends - now } or { '', 0 }
  if line == '0' then return found end
  lapse(key)
  for _, waiter in ipairs(call('ZRANGE', key .. ':line', 0, -1)) do
    found[#found + 1] = call('ZSCORE', key .. ':lapse', waiter) or '0'
    found[#found + 1] = call('HGET', key .. ':waiter', waiter) or ''
  end
  return found
end

local verbs = {
  acquire = acquire, renew = renew, annotate = annotate, release = release, inspect = inspect, ['break'] = breakLease
}
`,
})
