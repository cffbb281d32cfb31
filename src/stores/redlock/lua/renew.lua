-- renew: extends a vote. 16 digits of its token follow the id in KEY2. RESTORES is '1' if a free name may be restored. REST is
-- 'ATTEMPT DETAILS'. A renewal that is sent later has a higher attempt.
-- Answers '+TOKEN', '0' if the vote is lost, or 'f' if the name is free and could be restored.

function made.renew(key, key2, ttl, life, restores, rest)
  local id, known = sub(key2, 1, -17), tonumber(sub(key2, -16))
  local value = get(key)
  local held, ends, line, token, granted, start = parse(key, value)
  if held and not isOf(id, value, start) then return '0' end
  -- A vote with a higher token is none of this lease. A break may have come before it.
  if tonumber(token) > known and not (held and known == 0) then return '0' end
  if not held and restores ~= '1' then return 'f' end
  -- It was released here while another claim had the vote, so that the token was not raised.
  if not held and call('GET', key .. ':gone:' .. id) == 'all' then return '0' end
  local attempt, details = match(rest, '^(%d+) (.*)$')
  local last = endOf(ttl)
  if held then
    local before
    before, details = attemptOf(value, start)
    -- This renewal may be older than the last, and come over another connection. Then it must not shorten the lease.
    if tonumber(before) > tonumber(attempt) then
      attempt = before
      if ends - now > tonumber(ttl) then ttl, last = granted, format('%013.0f', ends) end
    end
  end
  local new = format('%.0f', math.max(token, known))
  hold(key, value, new, last, line, ttl, life, id .. ' ' .. attempt .. ' ' .. details)
  return '+' .. new
end
