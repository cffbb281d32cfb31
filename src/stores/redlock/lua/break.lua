-- break: ends the vote of one of several claims. REST is 'LEAST IDS', with a space after each id. Answers '+TOKEN', or '-TOKEN'
-- if none of them had the vote.

made['break'] = function(key, _, _, _, _, rest)
  local value = get(key)
  local held, _, line, token, ttl, start = parse(key, value)
  if not held or not string.find(rest, ' ' .. idOf(value, start) .. ' ', 1, true) then return '-' .. token end
  -- The lease ends even if no higher token is left.
  local fine, new = pcall(higher, token, capped(match(rest, '^%d+')))
  free(key, value, line, token, fine and new or token, ttl, start)
  if line == '1' then made.wake(key) end
  if not fine then error(new .. '; its lease was ended', 0) end
  return '+' .. new
end
