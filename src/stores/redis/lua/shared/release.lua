-- release: the part for a name that several claims hold or wait for. ../release.lua says what it takes and answers.

function made.release(key, id, memory)
  local name = open(key, true)
  if name.state == 'held' and isOf(id, name.rest) then
    if forget(key, name) then return '1' end
    name.state = 'free'
    change(key, name)
    mark(key, name)
    return '1'
  end
  local entry = entryOf(key, name, id)
  if memberOf(name, entry) then
    drop(key, name, { id })
    settle(key, name)
    if not name.gen then forget(key, name) end
    return '1'
  end
  if name.line == '1' then need(key, QUEUE) end
  if waiterOf(entry) then
    withdraw(key, name, { id })
    return '1'
  end
  call('SET', key .. ':gone:' .. id, '1', 'PX', memory)
  return '0'
end
