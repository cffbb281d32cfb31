-- raise: raises the token of a free name to LEAST. Answers '1', or '0' if the name is held.

function made.raise(key, _, _, _, _, least)
  local value = get(key)
  local held, _, line, token, ttl, start = parse(key, value)
  if tonumber(token) >= tonumber(least) then return '1' end
  if held then return '0' end
  remind(key, value, line, token, least, ttl, start)
  return '1'
end
