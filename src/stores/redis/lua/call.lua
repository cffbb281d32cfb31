-- What all requests of one call share. The call is described in ../README.md.

-- What this call knows of each name. It is cleared after a request that failed, because that may have left it wrong.
local names = {}
-- The messages to waiters of the caller, and the reason why messages to others were refused, if they were.
local woken, refused
local channel, cluster = ARGV[1], ARGV[2] == '1'
-- Is the hash slot of the name moving to another node? Then its keys may be on both, and only that of the lease is declared.
-- The old node refuses to touch a key that it does not have. On the new one such a key seems not to exist.
local isSplit = cluster and #KEYS == 1

-- Answers when a lease of TTL ms that is granted now ends, always in 13 digits.
local terms = {}
local function endOf(ttl)
  local ends = terms[ttl]
  if not ends then
    ends = format('%013.0f', now + ttl)
    terms[ttl] = ends
  end
  return ends
end

-- Runs a command that may take memory. A server that is out of memory refuses such a command only as the first write of a
-- script. So a name that exists can still be written, and leases can be renewed and released.
local function put(key, ...)
  local done = redis.pcall(...)
  if type(done) == 'table' and done.err then
    local life = call('PTTL', key)
    if life < 0 then error(done) end
    call('PEXPIRE', key, life)
    call(...)
  end
end

-- A function that answers a number that no token of a forgotten name exceeds, if the store has one.
local counter

-- Keeps a name for LIFE ms, or for longer if the clock was ahead when its token was granted.
local function remember(key, token, life)
  if tonumber(token) > floor and not (counter and tonumber(token) <= counter()) then life = math.ceil(token / 1000) - now + life end
  call('PEXPIRE', key, life)
end

-- Is called before a write for waiters that have their positions. A server that is out of memory refuses only the first
-- write of a script, and this one changes nothing. In a hash slot that moves, the key may be missing here.
local function mayGrow(key) redis.pcall('ZREM', key .. ':lapse', '') end

-- Sends a message to the process of a waiter. Answers the number of processes that received it, or nothing if it was refused.
local function tell(target, message)
  if target == channel then
    woken = (woken and woken .. ',' or '') .. message
    return 1
  end
  local receivers = redis.pcall('PUBLISH', target, message)
  if type(receivers) == 'number' then return receivers end
  refused = receivers.err
end

-- The first answer, which begins with the time, and a function that runs after all requests.
local head, finish = now
