-- vote: asks for the vote of this node. REST is 'ATTEMPT DETAILS'. QUEUES is '1' if the claim may queue.
-- Answers '+TOKEN', '-REMAINING AHEAD ID TOKEN DETAILS' if another claim has the vote, 'x' if the attempt was withdrawn, or 'q'
-- if the node does not vote now.

function verbs.vote(key, id, ttl, life, queues, rest)
  if votesIn > 0 then return 'q' end
  local value, gone = get(key), call('GET', key .. ':gone:' .. id)
  local attempt, details = match(rest, '^(%d+) (.*)$')
  if gone and (gone == 'all' or tonumber(attempt) <= tonumber(gone)) then return 'x' end
  local held, ends, line, token, granted, start = parse(key, value)
  if held and isOf(id, value, start) then
    local before, kept = attemptOf(value, start)
    if tonumber(before) > tonumber(attempt) then attempt = before end
    -- A stale copy of the request must not shorten a lease that was renewed for longer since.
    if ends - now > tonumber(ttl) then ttl, ends = granted, format('%013.0f', ends) else ends = endOf(ttl) end
    hold(key, value, token, ends, line, ttl, life, id .. ' ' .. attempt .. ' ' .. kept)
    return '+' .. token
  end
  if not held then
    if line == '1' and rare().leave(key, { id }) and call('ZCARD', key .. ':line') == 0 then line = '0' end
    token = higher(token, capped(attempt))
    hold(key, value, token, endOf(ttl), line, ttl, life, id .. ' ' .. attempt .. ' ' .. details)
    return '+' .. token
  end
  local ahead, place = 0, false
  if line == '1' then
    rare().lapse(key)
    place = call('ZRANK', key .. ':line', id)
    ahead = place or call('ZCARD', key .. ':line')
  end
  if queues == '1' then
    rare().queue(key, id, not place, ttl, details)
    if line == '0' then mark(key, format('%013.0f held 1', ends)) end
  end
  local _, theirs = attemptOf(value, start)
  return format('-%.0f %.0f %s %s %s', ends - now, ahead, idOf(value, start), token, theirs)
end
