-- Carries out the requests, and answers `head` and then each of them.

-- Equal requests that follow each other share a line of parameters.
local answers, isList = { head }, false
for at = FIRST, #ARGV, 2 do
  local verb, width, deadline, ttl, life, queues, rest = match(
    ARGV[at], '^(%a+) (%d+) (%d+) (%d+) (%d+) (%d+) (.*)$'
  )
  local ids = ARGV[at + 1]
  -- The request is late if its sender has given up, or has a wrong estimate of this clock. The answer has the time, by which
  -- the sender corrects the estimate.
  local late = deadline ~= '0' and now > tonumber(deadline)
  for from = 1, #ids, width do
    local fine, result = true, 'late'
    local id = sub(ids, from, from + width - 1)
    if not late then fine, result = pcall(verbs[verb], KEYS[#answers], id, ttl, life, queues, rest) end
    if not fine then
      names = {}
      result = '!' .. (type(result) == 'table' and result.err or tostring(result))
    end
    if type(result) == 'table' or (#result > 17 or not fine) and string.find(result, '\n', 1, true) then isList = true end
    answers[#answers + 1] = result
  end
end
if finish then finish() end
if woken or refused then answers[#answers + 1] = woken or '' end
if refused then answers[#answers + 1] = refused end
-- Clients read one text faster than a list, of which ioredis makes each element a view of the bytes that it read: 256
-- pairs at a time are 14 % faster.
return isList and answers or table.concat(answers, '\n')
