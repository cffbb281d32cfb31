-- break: ends the vote of one of several claims. REST is 'LEAST', then ' ID TOKEN' for each: a vote with a higher token is a
-- later one. Answers '+TOKEN', or '-TOKEN' if no vote ended.

made['break'] = function(key, _, _, _, _, rest)
  local value = get(key)
  local held, _, line, token, ttl, start = parse(key, value)
  local seen = held and match(rest, ' ' .. idOf(value, start) .. ' (%d+)')
  if not seen or tonumber(token) > tonumber(seen) then return '-' .. token end
  -- The lease ends even if no higher token is left.
  local fine, new = pcall(higher, token, capped(match(rest, '^%d+')))
  free(key, value, line, token, fine and new or token, ttl, start)
  if line == '1' then made.wake(key) end
  if not fine then error(new .. '; its lease was ended', 0) end
  return '+' .. new
end
