-- inspect: shows the claims of a name after AFTER, which is '-inf' at first.
-- Answers the holder if it is alone, where the next page begins if there is one, and for each claim the time when its lease or
-- position ends and its entry. The scores of members are minus the end of their leases, those of waiters their arrival.

-- The number of claims that all requests of one call may read: a long queue must not block the server.
local room = 1000

function made.inspect(key, _, _, _, _, after)
  local name = open(key)
  local isFirst = after == '-inf'
  local found = { isFirst and (name.state == 'held' or name.lost) and holderOf(key, name) or '', '' }
  if name.line == '0' and not name.gen then return found end
  if room <= 0 then
    found[2] = after
    return found
  end
  local line, claims = key .. ':line', {}
  -- Without members, what is left of an earlier group does not count.
  local from = (not name.gen or name.lost) and isFirst and '0' or after
  local page = call('ZRANGEBYSCORE', line, '(' .. from, '+inf', 'WITHSCORES', 'LIMIT', 0, room)
  if #page == 2 * room then
    found[2] = page[#page]
    page = call('ZRANGEBYSCORE', line, '(' .. from, found[2], 'WITHSCORES')
  end
  for at = 1, #page, 2 do claims[#claims + 1] = page[at] end
  -- Those that were passed.
  if name.line == '1' and isFirst and call('ZCARD', key .. ':lapse') > call('ZCOUNT', line, '(0', '+inf') then
    for _, id in ipairs(call('ZRANGE', key .. ':lapse', 0, 999)) do
      if not call('ZSCORE', line, id) then claims[#claims + 1] = id end
    end
  end
  room = room - #claims
  if #claims == 0 then return found end
  for at, entry in ipairs(call('HMGET', key .. ':claim', unpack(claims))) do
    found[#found + 1] = name.line == '1' and call('ZSCORE', key .. ':lapse', claims[at]) or -(page[2 * at] or 0)
    found[#found + 1] = entry or ''
  end
  return found
end
