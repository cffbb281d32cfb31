-- The changes of a vote.

local function hold(key, value, token, ends, line, ttl, life, rest)
  write(key, value, token, life, ends .. ' held ' .. line, ttl .. ' ' .. rest)
end

-- Frees a held name. Its key lives long enough, and its token never falls. A new token of the same length is written in
-- place.
local function free(key, value, line, token, new, ttl, start)
  local state = endOf('0') .. ' free ' .. line
  if #new ~= #token then return write(key, value, new, MEMORY, state, ttl .. ' ' .. sub(value, start)) end
  mark(key, state .. ' ' .. new)
end

-- Raises the token of a free name, which may be unknown.
local function remind(key, value, line, token, new, ttl, start)
  if not value then return write(key, value, new, MEMORY, endOf('0') .. ' free 0', '0 - 0 []') end
  free(key, value, line, token, new, ttl, start)
  remember(key, new, MEMORY)
end
