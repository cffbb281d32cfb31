-- The counter of the server: no token of a name that it forgot is higher. In a cluster each name would have it on another
-- node, so there is none.
local highest, isHigher = cluster and 0 or nil, false
function counter()
  if not highest then
    highest = tonumber(redis.pcall('GET', KEYS[#KEYS]) or '0')
    if not highest then error('COUNTER -') end
  end
  return highest
end

local function nextToken(token)
  local new, what = math.max(floor, counter() + 1), 'COUNTER '
  if tonumber(token) >= new then
    -- Only this name is so far ahead, and it is remembered by itself.
    new, what = token + 1, 'TOKEN '
  elseif not cluster then
    highest, isHigher = new, true
  end
  if new > LAST_TOKEN then error(what .. format('%.0f', new - 1)) end
  return format('%.0f', new)
end
