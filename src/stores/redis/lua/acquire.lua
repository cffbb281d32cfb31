-- acquire: requests the name for a claim.
-- KEY is the key of the lease, and ID the id of the claim. TTL is the time in ms for which the lease is granted, and LIFE the
-- time for which the name is remembered. QUEUES is '0' if the claim does not queue; otherwise it is '1', followed by the round
-- trip of the claim if that of the connection does not count. REST is 'LIMIT UNITS DETAILS', or 'DETAILS' for a limit of 1.
-- Answers '+TOKEN', '+TOKEN SLOTS NEXT', '-AT AHEAD ENDS TOKEN DETAILS', or 'x' for a claim that was withdrawn.
-- This part decides a name that at most one claim holds and nobody waits for. shared/acquire.lua decides all others.

function verbs.acquire(key, id, ttl, life, queues, rest)
  local name = names[key] or read(key)
  local held = name.state == 'held' and name.ends > now
  if held and isOf(id, name.rest) and (name.line == '0' or isSplit) then
    -- A stale copy of the request must not shorten what a renewal has extended since.
    if name.ends - now <= tonumber(ttl) then prolong(key, name, ttl, life) end
    return '+' .. name.token .. slotsOf(name)
  end
  -- To answer that the name is held takes no other key. In a slot that moves no claim joins the queue here.
  if held and name.share == '' and (isSplit or queues == '0' and name.line == '0') then
    return format('-%.0f 0 %.0f %s %s', name.ends, name.ends, name.token, match(name.rest, ' (.*)$'))
  end
  if held or name.line == '1' or name.gen or name.state == 'many' then return rare().acquire(key, id, ttl, life, queues, rest) end
  -- In a slot that moves the sender has looked for it on both nodes.
  if type((isSplit and redis.pcall or call)('GET', key .. ':gone:' .. id)) == 'string' then return 'x' end
  local limit, units, details = '1', '1', rest
  if sub(rest, 1, 1) ~= '[' then limit, units, details = match(rest, '^(%d+) (%d+) (.*)$') end
  return grantAlone(key, name, id, ttl, life, limit, units, details)
end
