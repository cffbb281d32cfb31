-- A client whose clock is a century ahead must not move the tokens by a century.
local highest = floor + 10000000
local function capped(attempt) return tonumber(attempt) <= highest and attempt or format('%.0f', highest) end

local LAST_TOKEN = '9007199254740991'

local function higher(token, least)
  local new = token + 1
  if new <= tonumber(least) then return least end
  if new > tonumber(LAST_TOKEN) then error('TOKEN ' .. token) end
  return format('%.0f', new)
end

-- The same for a release, which must also work after the last token.
local function freed(token, least)
  return tonumber(token) >= tonumber(LAST_TOKEN) and LAST_TOKEN or higher(token, least)
end
