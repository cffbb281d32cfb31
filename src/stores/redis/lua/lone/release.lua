-- release, for a request that is alone: releases a lease that its claim holds alone and that has no waiters.
-- KEYS are the lease and the counter. ARGV is the id of the claim. Answers like ../release.lua. If it cannot decide, it
-- answers an empty text. That is also so if the token is above the counter, because then the name must be remembered.

local call, match, sub, format = redis.call, string.match, string.sub, string.format
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = call('MGET', KEYS[1], KEYS[2])
local value, highest = found[1] or '', tonumber(found[2] or '')
local ends, token, most, start = match(value, '^1 (%d+) held 0 (%d+) (%d+)[^ ]* ()')
local left = (ends or 0) - now
if not highest or left <= 0 or left > tonumber(most) or tonumber(token) > highest then return '' end
if sub(value, start, start + #ARGV[1]) ~= ARGV[1] .. ' ' then return '' end
call('PEXPIRE', KEYS[1], 0)
return now .. '\n1'
