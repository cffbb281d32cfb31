-- release: withdraws a claim that holds, waits, or has not arrived yet.
-- MEMORY is the time in ms for which an unknown claim is refused. Answers '1', or '0' if nothing was found.
-- This part decides a name that at most one claim holds and nobody waits for. shared/release.lua decides all others.

function verbs.release(key, id, memory)
  local name = names[key] or read(key)
  local own = name.state == 'held' and name.ends > now and isOf(id, name.rest)
  local mayQueue = name.line == '1' or name.gen or name.state == 'many'
  -- In a slot that moves the queue may be on the other node. To end a lease takes none of it.
  if mayQueue and not (own and isSplit) then return rare().release(key, id, memory) end
  if own then
    if not forget(key, name) then
      name.state, name.ends = 'free', now
      mark(key, name)
      if mayQueue then freed[key] = true end
    end
    return '1'
  end
  call('SET', key .. ':gone:' .. id, '1', 'PX', memory)
  return '0'
end
