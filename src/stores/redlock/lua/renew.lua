-- renew: extends a vote. 16 digits of its token follow the id in KEY2. RESTORES is '1' if a free name may be restored.
-- Answers '+TOKEN', '0' if the vote is lost, or 'f' if the name is free and could be restored.

function made.renew(key, key2, ttl, life, restores, details)
  local id, known = sub(key2, 1, -17), tonumber(sub(key2, -16))
  local value = get(key)
  local held, _, line, token, granted, start = parse(key, value)
  if held and not isOf(id, value, start) then return '0' end
  if not held and tonumber(token) > known then return '0' end
  local new = format('%.0f', math.max(token, known))
  local attempt
  if held then
    attempt, details = attemptOf(value, start)
    if new == token and granted == ttl and attempt == RENEWED then
      mark(key, endOf(ttl) .. ' held ' .. line)
      remember(key, token, life)
      return '+' .. new
    end
  elseif restores ~= '1' then return 'f' end
  hold(key, value, new, endOf(ttl), line, ttl, life, id .. ' ' .. RENEWED .. ' ' .. details)
  return '+' .. new
end
