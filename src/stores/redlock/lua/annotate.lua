-- annotate: replaces the details of a vote, unless a later note has arrived. 16 digits of its token follow the id in KEY2.
-- Answers '+TOKEN', '0' if the vote is lost, or 'f' if the name is free.

-- The revision of a note. The note of a vote has none.
local function revisionOf(details) return tonumber(match(details, ',(%d+)%] *$') or 0) end

-- Replaces the details that begin at START, and leaves everything before them as it is.
local function describe(key, value, start, details)
  put(key, 'SETRANGE', key, start - 1, details .. rep(' ', #value + 1 - start - #details))
  known[key] = nil
end

function made.annotate(key, key2, _, _, _, details)
  local id, known = sub(key2, 1, -17), tonumber(sub(key2, -16))
  local value = get(key)
  local held, _, _, token, _, start = parse(key, value)
  if held and not isOf(id, value, start) then return '0' end
  if tonumber(token) > known and not (held and known == 0) then return '0' end
  if not held then return 'f' end
  local from = match(value, ' %d+ ()', start)
  -- A later note may have arrived over another connection.
  if revisionOf(details) > revisionOf(sub(value, from)) then describe(key, value, from, details) end
  return '+' .. token
end
