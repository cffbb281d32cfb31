-- The time of the server, which all requests of a call share.

local call, match, sub, format, rep = redis.call, string.match, string.sub, string.format, string.rep
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- The time in microseconds. New tokens are at least this. So they rise although a restart or a failover lost the last token.
local floor = time[1] * 1000000 + time[2]
local LAST_TOKEN = 9007199254740991
