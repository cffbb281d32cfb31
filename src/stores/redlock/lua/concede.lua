-- concede: withdraws the vote for an attempt, but not for a later one, and refuses the attempt from now on.
-- If WAKES is '1' it wakes the first waiter.
-- Answers '1' if this node had that vote, otherwise '0'.

function made.concede(key, id, memory, _, wakes, attempt)
  local value = get(key)
  local held, _, line, token, ttl, start = parse(key, value)
  if held and isOf(id, value, start) then
    if tonumber((attemptOf(value, start))) > tonumber(attempt) then return '0' end
    free(key, value, line, token, token, ttl, start)
    if line == '1' and wakes == '1' then made.wake(key) end
    return '1'
  end
  local gone = call('GET', key .. ':gone:' .. id)
  if not gone or gone ~= 'all' and tonumber(gone) < tonumber(attempt) then
    call('SET', key .. ':gone:' .. id, attempt, 'PX', memory)
  end
  return '0'
end
