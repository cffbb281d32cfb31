-- commit: writes the token of an attempt to its vote, whose token must still be the one that was seen. A later attempt of the
-- claim may have kept the vote. REST is 'ATTEMPT SEEN NEW'.
-- Answers '1', or '0' if it was not written.

function made.commit(key, id, _, life, _, rest)
  local attempt, seen, new = match(rest, '^(%d+) (%d+) (%d+)$')
  local value = get(key)
  local held, ends, line, token, granted, start = parse(key, value)
  if not held or not isOf(id, value, start) or token ~= seen then return '0' end
  if attemptOf(value, start) ~= attempt then return '0' end
  hold(key, value, new, format('%013.0f', ends), line, granted, life, sub(value, start))
  return '1'
end
