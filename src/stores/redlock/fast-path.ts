/**
 * Serves one vote for a free name, or one release of a lease without waiters, before the functions of the script are
 * created. The script then takes 29 us for a call instead of 46 on a machine that sleeps between calls (Redis 7.0).
 *
 * Like the fast path of a single server, it serves only requests that it can fully decide. It answers and stores exactly
 * what the functions would. It makes the same checks: the note of the node, the deadline, the tombstone, the end by the
 * clock of the server, the highest attempt and token.
 */
export const fastPath = `
if #KEYS == 6 and #ARGV == 7 then
  local key, request, ids = KEYS[1], ARGV[6], ARGV[7]
  local found = call('MGET', key, KEYS[5], KEYS[6])
  local value, votes = found[1], ARGV[5] == '0'
  if not votes then
    local of, since = match(found[3] or '', '^(%x+) (%d+)$')
    votes = of == ARGV[3] and since + ARGV[5] <= now
  end
  if not votes then
    -- The node is in quarantine, or its note must be written.
  elseif #ids == 48 and request == 'release 48 0 5000 0 0 ' then
    local ends, token, start = match(value or '', '^1 (%d+) held 0 (%d+) [^ ]+ ()')
    local known = tonumber(sub(ids, 33))
    if
      ends and now < tonumber(ends) and sub(value, start, start + 32) == sub(ids, 1, 32) .. ' '
      and known and known >= tonumber(token) and known < LAST_TOKEN
    then
      local state = format('%013.0f free 0 %.0f', now, known + 1)
      -- A token that became longer moves what follows it.
      if #state == #token + 21 and type(redis.pcall('SETRANGE', key, 2, state)) == 'number' then return now .. ' 0\\n1' end
    end
  elseif #ids == 32 and not found[2] then
    local deadline, ttl, life, rest, attempt = match(request, '^vote 32 (%d+) (%d+) (%d+) [01] ((%d+) .*)$')
    local token = 0
    if value then token = match(value, '^1 %d+ free 0 (%d+) [^ ]+ ') end
    local new = tonumber(attempt)
    if
      new and token and now <= tonumber(deadline) and new > tonumber(token)
      and new <= floor + 10000000
    then
      local text, written = format('1 %013.0f held 0 %s %s %s %s', now + ttl, attempt, ttl, ids, rest)
      if value then written = type(redis.pcall('SETRANGE', key, 0, text .. rep(' ', #value - #text))) == 'number'
      else written = (redis.pcall('SET', key, text, 'NX') or {}).ok end
      if written then
        call('PEXPIRE', key, new > floor and math.ceil(new / 1000) - now + life or life)
        return now .. ' 0\\n+' .. attempt
      end
    end
  end
end
`
