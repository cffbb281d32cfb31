-- break: ends a vote. ID is the claim whose vote ends; '-' means any. Answers '+TOKEN', or '-TOKEN' if there was none.

made['break'] = function(key, id, _, _, _, least)
  local value = get(key)
  local held, _, line, token, ttl, start = parse(key, value)
  if not held or id ~= '-' and not isOf(id, value, start) then return '-' .. token end
  -- The lease ends even if no higher token is left.
  local fine, new = pcall(higher, token, capped(least))
  free(key, value, line, token, fine and new or token, ttl, start)
  if line == '1' then made.wake(key) end
  if not fine then error(new .. '; its lease was ended', 0) end
  return '+' .. new
end
