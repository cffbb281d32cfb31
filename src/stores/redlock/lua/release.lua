-- release: withdraws a claim. 16 digits of its token, or zeros, follow the id in KEY2.
-- MEMORY is the time in ms for which an unknown claim is refused. Answers '1', or '0' if nothing was found.

function verbs.release(key, key2, memory)
  local id, known = sub(key2, 1, -17), tonumber(sub(key2, -16))
  local value = get(key)
  local held, _, line, token, ttl, start = parse(key, value)
  local own = held and isOf(id, value, start)
  local waited = line == '1' and rare().leave(key, { id })
  -- A late renewal must not restore it. The token cannot rise while another claim has the vote: then a tombstone refuses it.
  local new = known > 0 and freed(known, token) or token
  if own then free(key, value, line, token, new, ttl, start)
  elseif not held and new ~= token then remind(key, value, line, token, new, ttl, start) end
  if line == '1' and (own or waited and not held) then rare().wake(key) end
  if not own and (known > 0 or not waited) then call('SET', key .. ':gone:' .. id, 'all', 'PX', memory) end
  return (own or waited) and '1' or '0'
end
