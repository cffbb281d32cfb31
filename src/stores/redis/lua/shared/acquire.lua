-- acquire: the part for a name that several claims hold or wait for. ../acquire.lua says what it takes and answers.

function made.acquire(key, id, ttl, life, queues, rest)
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
  if queues ~= '0' then join(key, name, id, arrival, ttl, tonumber(sub(queues, 2)) or ARGV[3], limit, units, details) end
  return format('-%.0f %d %s', soonest(key, name, ahead), ahead, holderOf(key, name))
end
