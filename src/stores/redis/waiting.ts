/** Lua for requests about all claims of a name: to inspect them, and to keep the positions of those that wait. */
export const waiting: string = `
-- Claims that all requests of one call may read: a long queue must not block the server.
local room = 1000

-- The holder if it is alone; where the next page begins if there is one; and the claims after AFTER: the members of a group
-- by minus the end of their leases, the waiters by their arrival.
local function inspect(key, _, _, _, _, after)
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
  if isFirst and call('ZCARD', key .. ':lapse') > call('ZCOUNT', line, '(0', '+inf') then
    for _, id in ipairs(call('ZRANGE', key .. ':lapse', 0, 999)) do
      if not call('ZSCORE', line, id) then claims[#claims + 1] = id end
    end
  end
  room = room - #claims
  if #claims == 0 then return found end
  for at, entry in ipairs(call('HMGET', key .. ':claim', unpack(claims))) do
    found[#found + 1] = call('ZSCORE', key .. ':lapse', claims[at]) or -(page[2 * at] or 0)
    found[#found + 1] = entry or ''
  end
  return found
end

-- Keeps the positions of waiters of one process for LIFETIME ms. Answers when the first of them may be granted the name if
-- nothing is freed; its position and id; and those that have lost theirs, which XX does not bring back.
local function keep(key, _, lifetime, _, _, ids)
  local name = open(key)
  local lapses, scores, size, lost = endOf(lifetime), {}, 0, { '' }
  for id in string.gmatch(ids, '[^ ]+') do
    scores[size + 1], scores[size + 2] = lapses, id
    size = size + 2
  end
  mayGrow(key)
  if call('ZADD', key .. ':lapse', 'XX', 'CH', unpack(scores)) < size / 2 then
    for at = 2, size, 2 do
      if not call('ZSCORE', key .. ':lapse', scores[at]) then lost[#lost + 1] = scores[at] end
    end
  end
  local function arrivalOf(id) return select(2, waiterOf(call('HGET', key .. ':claim', id))) end
  -- Those that were passed count again.
  if call('ZCARD', key .. ':lapse') > call('ZCOUNT', key .. ':line', '(0', '+inf') then
    for at = 2, size, 2 do
      local arrival = arrivalOf(scores[at])
      if arrival then call('ZADD', key .. ':line', arrival, scores[at]) end
    end
  end
  extend(key, { ':line', ':lapse', ':claim' }, lifetime)
  -- The client knows them in the order in which they came, which is nearly always this one.
  local ahead, first
  for place, id in ipairs(call('ZRANGEBYSCORE', key .. ':line', '(0', '+inf', 'LIMIT', 0, 10)) do
    if not first and string.find(ids, id, 1, true) then ahead, first = place - 1, id end
  end
  if not first then
    local arrival = arrivalOf(scores[2])
    ahead = arrival and call('ZCOUNT', key .. ':line', '(0', '(' .. arrival) or 0
  end
  local _, _, _, limit, units = waiterOf(call('HGET', key .. ':claim', first or scores[2]))
  local isNext = limit and fits(name, limit, units) and (ahead == 0 or ahead == 1 and passableAt(key, name) <= now)
  local at = isNext and now or soonest(key, name, ahead)
  return format('%.0f %d ', at, ahead) .. (first or '-') .. table.concat(lost, ' ')
end
`
