-- look: shows the vote, and the waiters from number FROM on, or none if FROM is '-'.
-- Answers a list: 'REMAINING ID TOKEN DETAILS' of the vote, then 'REMAINING ID' and the entry of each waiter.

-- The queue is read in pages, because a script blocks the whole server.
function made.look(key, _, _, _, _, from)
  local value = get(key)
  local held, ends, line, token, _, start = parse(key, value)
  local found = { '' }
  if held then
    local _, details = attemptOf(value, start)
    found[1] = format('%.0f %s %s %s', ends - now, idOf(value, start), token, details)
  end
  if line == '0' or from == '-' then return found end
  made.lapse(key)
  for _, waiter in ipairs(call('ZRANGE', key .. ':line', from, from + PAGE - 1)) do
    local lapses = call('ZSCORE', key .. ':lapse', waiter) or now
    found[#found + 1] = format('%.0f %s', lapses - now, waiter)
    found[#found + 1] = call('HGET', key .. ':waiter', waiter) or ''
  end
  return found
end
