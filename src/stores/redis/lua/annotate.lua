-- annotate: replaces the details of a claim of limit 1.
-- Answers '1', or '0' if there is no such lease.

function verbs.annotate(key, id, _, _, _, details)
  local name = alone(key, id)
  if not name then return gone(key) end
  name.rest = id .. ' ' .. details
  write(key, name)
  return '1'
end
