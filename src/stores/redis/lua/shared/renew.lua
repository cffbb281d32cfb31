-- renewShared: extends the lease of a claim of a limit above 1, which may be a member of a group.
-- Answers '+TOKEN SLOTS NEXT', or '0' if there is no such lease.

function made.renewShared(key, id, ttl, life)
  local name = alone(key, id)
  if name then
    prolong(key, name, ttl, life)
    return '+' .. name.token .. slotsOf(name)
  end
  name = open(key, true)
  local token, granted, limit, slots, details = memberOf(name, entryOf(key, name, id))
  if not token then return gone(key) end
  prolongMember(key, name, id, now + ttl, ttl, life, token, granted, limit, slots, details)
  return format('+%s %s %.0f', token, slots, nextOf(key, name))
end
