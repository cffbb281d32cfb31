-- commit: writes the token of the attempt to a vote whose token is still the one that was seen. REST is 'SEEN NEW'.
-- Answers '1', or '0' if it was not written.

function made.commit(key, id, _, life, _, rest)
  local seen, new = match(rest, '^(%d+) (%d+)$')
  local value = get(key)
  local held, ends, line, token, granted, start = parse(key, value)
  if not held or not isOf(id, value, start) or token ~= seen then return '0' end
  hold(key, value, new, format('%013.0f', ends), line, granted, life, sub(value, start))
  return '1'
end
