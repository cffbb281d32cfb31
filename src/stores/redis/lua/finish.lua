-- Writes the counter and wakes waiters. The counter comes after the grants, because a server that is out of memory would refuse
-- it as the first write of a call.
function finish()
  if isHigher then redis.pcall('SET', KEYS[#KEYS], format('%.0f', highest)) end
  for key in pairs(freed) do seconds[key] = true end
  for key in pairs(seconds) do pcall(rare().wake, key) end
end
