-- annotateShared: replaces the details of a claim of a limit above 1, which may be a member of a group.
-- Answers '1', or '0' if there is no such lease.

function made.annotateShared(key, id, _, _, _, details)
  local name = alone(key, id)
  if name then
    name.rest = id .. ' ' .. details
    write(key, name)
    return '1'
  end
  name = open(key, true)
  local token, ttl, limit, slots = memberOf(name, entryOf(key, name, id))
  if not token then return gone(key) end
  mayGrow(key)
  call('HSET', key .. ':claim', id, table.concat({ 'h', name.gen, token, ttl, limit, slots, details }, ' '))
  return '1'
end
