/**
 * One acquire of a free name, or one release of a lease without waiters, before the functions of the script are created.
 * That takes 7.5 us in place of 11, and 5.6 in place of 9 (Redis 7.0), which a caller with one lease at a time notices.
 *
 * It serves only what it is sure of, and does to the keys exactly what the functions do. Everything else goes on below.
 * So nothing is checked less: the deadline, the tombstone, the end by the clock of the server, the counter of tokens.
 * `SET` with `NX` also refuses a key of another type. The server refuses it when it is out of memory; then nothing is
 * written yet.
 */
export const fastPath = `
if #KEYS == 6 and #ARGV == 5 and #ARGV[5] == 32 then
  local key, id = KEYS[1], ARGV[5]
  local verb, _, deadline, ttl, life, _, rest = match(
    ARGV[4], '^(%a+) (%d+) (%d+) (%d+) (%d+) (%d+) (.*)$'
  )
  local found = call('MGET', key, KEYS[6], KEYS[5])
  local value, highest = found[1], tonumber(found[2] or '')
  if highest and verb == 'release' then
    local ends, token, most, start = match(value or '', '^1 (%d+) held 0 (%d+) (%d+)[^ ]* ()')
    local left = (ends or 0) - now
    if left > 0 and left <= tonumber(most) and tonumber(token) <= highest and sub(value, start, start + 32) == id .. ' ' then
      call('PEXPIRE', key, 0)
      return now .. '\\n1'
    end
  elseif highest and verb == 'acquire' and not value and not found[3] and now <= tonumber(deadline) and highest < LAST_TOKEN then
    local token, ends, answer = format('%.0f', math.max(floor, highest + 1)), now + ttl, ''
    local limit, details = match(rest, '^(%d+) 1 (.*)$')
    if limit then ttl, rest, answer = ttl .. '/' .. limit .. '/1', details, format(' 0 %.0f', ends) end
    value = format('1 %013.0f held 0 %s %s %s %s', ends, token, ttl, id, rest)
    if sub(rest, 1, 1) == '[' and (redis.pcall('SET', key, value, 'NX') or {}).ok then
      call('PEXPIRE', key, life)
      call('SET', KEYS[6], token)
      return now .. '\\n+' .. token .. answer
    end
  end
end
`
