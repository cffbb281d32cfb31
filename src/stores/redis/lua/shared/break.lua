-- break: ends leases of a name. OF is 'TOKEN SLOT' of the lease to end; '-' in place of either means any.
-- Answers '+TOKEN', which outranks the leases that ended, or '0' if there is no such lease.

made['break'] = function(key, _, _, life, _, of)
  local name = open(key, true)
  local token, slot = match(of, '^(%S+) (%S+)$')
  local function isMeant(each, slots)
    return (token == '-' or token == each) and (slot == '-' or string.find(',' .. slots .. ',', ',' .. slot .. ',', 1, true))
  end
  local ended = {}
  if name.state == 'held' then
    local slots = match(slotsOf(name), '[^ ]+') or '0'
    if isMeant(name.token, slots) then ended[1] = '' end
  elseif name.gen and of == '- -' then ended[1] = ''
  elseif name.gen then
    for _, id in ipairs(call('ZRANGEBYSCORE', key .. ':line', '-inf', '(0')) do
      local each, _, _, slots = memberOf(name, call('HGET', key .. ':claim', id))
      if each and isMeant(each, slots) then ended[1] = id end
    end
  end
  if #ended == 0 then return gone(key) end
  -- If no higher token is left, the leases end all the same.
  local fine, new = pcall(nextToken, name.token)
  if fine then name.token = new end
  if name.state == 'held' then
    name.state = 'free'
    change(key, name)
    write(key, name)
  elseif ended[1] == '' then disband(key, name)
  else
    drop(key, name, ended)
    settle(key, name)
  end
  remember(key, name.token, name.gen and name.ends - now + life or life)
  if not fine then error(new .. '; its lease was ended', 0) end
  return '+' .. name.token
end
