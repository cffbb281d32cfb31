import { GONE, MEMORY, type Script, scriptOf } from '../redis/script.ts'
import { fastPath } from './fast-path.ts'
import { LINE, vote } from './vote.ts'

/** The number of waiters that one request reads. */
export const PAGE = 1_000

/**
 * The script of one node. `ARGV` begins with the channel, '0', the `run_id` of the server, the time when it started, and
 * `maxTtl`. The last key is the note of the node, which says since when the node remembers.
 *
 * In renew, annotate and release, 16 digits of the token, or zeros, follow the id.
 */
export const script: Script = scriptOf({
  touches: { vote: [...LINE, GONE], release: [...LINE, GONE], concede: [GONE], break: LINE, look: LINE },
  first: 6,
  head: "format('%.0f %.0f', now, votesIn)",
  fastPath,
  verbs: `${vote}
local MEMORY = ${MEMORY}
local runId, startedAt, maxTtl = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])

-- A client whose clock is a century ahead must not move the tokens by a century.
local highest = floor + 10000000
local function capped(attempt) return tonumber(attempt) <= highest and attempt or format('%.0f', highest) end

-- A node that may have forgotten a vote does not vote while a lease of that time may last: after a restart, whatever it
-- kept, and when the note is gone, because all other keys may be gone too. Uptime has whole seconds.
local votesIn = 0
if maxTtl > 0 then
  local note = call('GET', KEYS[#KEYS])
  local of, since = match(note or '', '^(%x+) (%d+)$')
  -- After the clock was set back, an earlier time is in the future. Then the quarantine begins again.
  if of ~= runId or since - now > 1000 then
    local afterStart = math.min(startedAt, now) + 1000
    since = (note and afterStart + maxTtl > now) and afterStart or now
    redis.pcall('SET', KEYS[#KEYS], format('%s %.0f', runId, since))
  end
  votesIn = math.min(math.max(since + maxTtl - now, 0), maxTtl)
end

-- The attempt of a renewed vote. Such a vote is part of a lease, and the late withdrawal of an earlier attempt must not
-- free it.
local RENEWED = '9007199254740991'
local LAST_TOKEN = '9007199254740991'

-- The attempt that got the vote, and the details of the claim.
local function attemptOf(value, start) return match(value, ' (%d+) (.*)$', start) end
-- The revision of the note. The note of a vote has none.
local function revisionOf(details) return tonumber(match(details, ',(%d+)%] *$') or 0) end
local function idOf(value, start) return match(value, '^[^ ]+', start) end

local function higher(token, least)
  local new = token + 1
  if new <= tonumber(least) then return least end
  if new > tonumber(LAST_TOKEN) then error('TOKEN ' .. token) end
  return format('%.0f', new)
end

-- The same for a release, which must also work with the last token.
local function freed(token, least)
  return tonumber(token) >= tonumber(LAST_TOKEN) and LAST_TOKEN or higher(token, least)
end

local function hold(key, value, token, ends, line, ttl, life, rest)
  write(key, value, token, life, ends .. ' held ' .. line, ttl .. ' ' .. rest)
end

-- Frees a held name. Its key lives long enough, and its token never falls. A new token of the same length is written in
-- place.
local function free(key, value, line, token, new, ttl, start)
  local state = endOf('0') .. ' free ' .. line
  if #new ~= #token then return write(key, value, new, MEMORY, state, ttl .. ' ' .. sub(value, start)) end
  mark(key, state .. ' ' .. new)
end

-- Raises the token of a free name, which may be unknown.
local function remind(key, value, line, token, new, ttl, start)
  if not value then return write(key, value, new, MEMORY, endOf('0') .. ' free 0', '0 - 0 []') end
  free(key, value, line, token, new, ttl, start)
  remember(key, new, MEMORY)
end

local function vote(key, id, ttl, life, queues, rest)
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
    if line == '1' and leave(key, { id }) and call('ZCARD', key .. ':line') == 0 then line = '0' end
    token = higher(token, capped(attempt))
    hold(key, value, token, endOf(ttl), line, ttl, life, id .. ' ' .. attempt .. ' ' .. details)
    return '+' .. token
  end
  local ahead, place = 0, false
  if line == '1' then
    lapse(key)
    place = call('ZRANK', key .. ':line', id)
    ahead = place or call('ZCARD', key .. ':line')
  end
  if queues == '1' then
    queue(key, id, not place, ttl, details)
    if line == '0' then mark(key, format('%013.0f held 1', ends)) end
  end
  local _, theirs = attemptOf(value, start)
  return format('-%.0f %.0f %s %s %s', ends - now, ahead, idOf(value, start), token, theirs)
end

local function commit(key, id, _, life, _, rest)
  local seen, new = match(rest, '^(%d+) (%d+)$')
  local value = get(key)
  local held, ends, line, token, granted, start = parse(key, value)
  if not held or not isOf(id, value, start) or token ~= seen then return '0' end
  hold(key, value, new, format('%013.0f', ends), line, granted, life, sub(value, start))
  return '1'
end

local function renew(key, key2, ttl, life, restores, details)
  local id, known = sub(key2, 1, -17), tonumber(sub(key2, -16))
  local value = get(key)
  local held, _, line, token, granted, start = parse(key, value)
  if held and not isOf(id, value, start) then return '0' end
  if not held and tonumber(token) > known then return '0' end
  local new = format('%.0f', math.max(token, known))
  local attempt
  if held then
    attempt, details = attemptOf(value, start)
    if new == token and granted == ttl and attempt == RENEWED then
      mark(key, endOf(ttl) .. ' held ' .. line)
      remember(key, token, life)
      return '+' .. new
    end
  elseif restores ~= '1' then return 'f' end
  hold(key, value, new, endOf(ttl), line, ttl, life, id .. ' ' .. RENEWED .. ' ' .. details)
  return '+' .. new
end

local function annotate(key, key2, _, _, _, details)
  local id, known = sub(key2, 1, -17), tonumber(sub(key2, -16))
  local value = get(key)
  local held, _, _, token, _, start = parse(key, value)
  if not held then return tonumber(token) > known and '0' or 'f' end
  if not isOf(id, value, start) then return '0' end
  local from = match(value, ' %d+ ()', start)
  -- A later note may have arrived over another connection.
  if revisionOf(details) > revisionOf(sub(value, from)) then describe(key, value, from, details) end
  return '+' .. token
end

local function release(key, key2, memory)
  local id, known = sub(key2, 1, -17), tonumber(sub(key2, -16))
  local value = get(key)
  local held, _, line, token, ttl, start = parse(key, value)
  local own = held and isOf(id, value, start)
  local waited = line == '1' and leave(key, { id })
  -- A late renewal must not restore it.
  local new = known > 0 and freed(known, token) or token
  if own then free(key, value, line, token, new, ttl, start)
  elseif not held and new ~= token then remind(key, value, line, token, new, ttl, start) end
  if line == '1' and (own or waited and not held) then wake(key) end
  if own or waited then return '1' end
  call('SET', key .. ':gone:' .. id, 'all', 'PX', memory)
  return '0'
end

local function concede(key, id, memory, _, _, attempt)
  local value = get(key)
  local held, _, line, token, ttl, start = parse(key, value)
  if held and isOf(id, value, start) then
    if tonumber((attemptOf(value, start))) > tonumber(attempt) then return '0' end
    free(key, value, line, token, token, ttl, start)
    return '1'
  end
  local gone = call('GET', key .. ':gone:' .. id)
  if not gone or gone ~= 'all' and tonumber(gone) < tonumber(attempt) then
    call('SET', key .. ':gone:' .. id, attempt, 'PX', memory)
  end
  return '0'
end

-- ID: the claim whose vote ends; '-': of any.
local function breakLease(key, id, _, _, _, least)
  local value = get(key)
  local held, _, line, token, ttl, start = parse(key, value)
  if not held or id ~= '-' and not isOf(id, value, start) then return '-' .. token end
  -- The lease ends even if no higher token is left.
  local fine, new = pcall(higher, token, capped(least))
  free(key, value, line, token, fine and new or token, ttl, start)
  if line == '1' then wake(key) end
  if not fine then error(new .. '; its lease was ended', 0) end
  return '+' .. new
end

local function raise(key, _, _, _, _, least)
  local value = get(key)
  local held, _, line, token, ttl, start = parse(key, value)
  if tonumber(token) >= tonumber(least) then return '1' end
  if held then return '0' end
  remind(key, value, line, token, least, ttl, start)
  return '1'
end

-- The queue is read in pages, because a script blocks the whole server.
local function look(key, _, _, _, _, from)
  local value = get(key)
  local held, ends, line, token, _, start = parse(key, value)
  local found = { '' }
  if held then
    local _, details = attemptOf(value, start)
    found[1] = format('%.0f %s %s %s', ends - now, idOf(value, start), token, details)
  end
  if line == '0' then return found end
  lapse(key)
  for _, waiter in ipairs(call('ZRANGE', key .. ':line', from, from + ${PAGE} - 1)) do
    local lapses = call('ZSCORE', key .. ':lapse', waiter) or now
    found[#found + 1] = format('%.0f %s', lapses - now, waiter)
    found[#found + 1] = call('HGET', key .. ':waiter', waiter) or ''
  end
  return found
end

local verbs = {
  vote = vote, commit = commit, renew = renew, annotate = annotate, release = release, concede = concede,
  ['break'] = breakLease, raise = raise, look = look
}
`,
})
