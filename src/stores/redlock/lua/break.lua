-- break: ends the vote of one of several claims, and raises the token to NEW unless a vote is left. REST is 'NEW', then
-- ' ID TOKEN' for each claim, of which a vote with a higher token is left. Answers '+TOKEN' if a vote ended, '=TOKEN' if only
-- the token was raised, otherwise '-TOKEN'.

made['break'] = function(key, _, _, _, _, rest)
  local value = get(key)
  local held, _, line, token, ttl, start = parse(key, value)
  local new = match(rest, '^%d+')
  local seen = held and match(rest, ' ' .. idOf(value, start) .. ' (%d+)')
  local ends = seen and tonumber(token) <= tonumber(seen)
  local rises = tonumber(token) < tonumber(new)
  if not ends and (held or not rises) then return '-' .. token end
  -- The lease ends even if no higher token is left.
  remind(key, value, line, token, rises and new or token, ttl, start)
  if ends and line == '1' then made.wake(key) end
  if not rises then error('TOKEN ' .. token .. '; its lease was ended', 0) end
  return (ends and '+' or '=') .. new
end
