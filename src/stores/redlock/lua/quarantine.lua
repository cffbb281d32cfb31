local runId, startedAt, maxTtl = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])

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
head = format('%.0f %.0f', now, votesIn)
