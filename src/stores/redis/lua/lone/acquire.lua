-- acquire, for a request that is alone: acquires a free name for a claim of one unit.
-- KEYS are the lease, its tombstone and the counter. ARGV are the deadline, 'TTL LIFE QUEUES REST' and the id of the claim.
-- Answers like ../acquire.lua. If it cannot decide, it answers an empty text and has written nothing. That is so if the name
-- has a value of any type, the claim has a tombstone, the counter is missing or used up, or the request is late. `SET` is
-- the first write, because a server that is out of memory refuses the first write.

local call, match, sub, format = redis.call, string.match, string.sub, string.format
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = call('MGET', KEYS[1], KEYS[2], KEYS[3])
local highest = tonumber(found[3] or '')
if found[1] or found[2] or not highest or highest >= 9007199254740991 or now > tonumber(ARGV[1]) then return '' end
local ttl, life, rest = match(ARGV[2], '^(%d+) (%d+) %d+ (.*)$')
local token, ends, share, answer = format('%.0f', math.max(time[1] * 1000000 + time[2], highest + 1)), now + ttl, '', ''
if sub(rest, 1, 1) ~= '[' then
  local limit, details = match(rest, '^(%d+) 1 (.*)$')
  if not limit then return '' end
  share, rest, answer = '/' .. limit .. '/1', details, format(' 0 %.0f', ends)
end
local value = format('1 %013.0f held 0 %s %s%s %s %s', ends, token, ttl, share, ARGV[3], rest)
if not (redis.pcall('SET', KEYS[1], value, 'NX', 'PX', life) or {}).ok then return '' end
call('SET', KEYS[3], token)
return now .. '\n+' .. token .. answer
