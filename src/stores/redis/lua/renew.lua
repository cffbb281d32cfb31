-- renew: extends the lease of a claim of limit 1. TTL and LIFE are those of acquire.lua.
-- Answers '+TOKEN', or '0' if there is no such lease.

function verbs.renew(key, id, ttl, life)
  local name = alone(key, id)
  if not name then return gone(key) end
  prolong(key, name, ttl, life)
  return '+' .. name.token .. slotsOf(name)
end
