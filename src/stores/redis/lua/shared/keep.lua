-- keep: keeps the positions of waiters of one process for LIFETIME ms.
-- Answers 'AT AHEAD ID LOST': when the first of them may be granted the name if nothing is freed, its position and id, and
-- the ids of those that have lost their positions. Positions that were lost are not restored.

function made.keep(key, _, lifetime, _, _, ids)
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
  extend(key, QUEUE, lifetime)
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
  if at == math.huge then at = now end -- the name is free, and all of them have lost their positions
  return format('%.0f %d ', at, ahead) .. (first or '-') .. table.concat(lost, ' ')
end
