import { createHash } from 'node:crypto'

/** A Lua script, and the SHA-1 by which Redis caches it. */
export interface Script {
  readonly source: string
  readonly sha: string
}

/**
 * ARGV[1] is the number of holders. KEYS begins with the marks of their resources, a hash each: by slot `epoch:token:time`,
 * with the time of the last change in milliseconds; the field of the name is empty. For each holder ARGV goes on with its
 * epoch, its token, and its slots with `+` between them, none if its limit is 1. Numbers are compared as text, because a Lua
 * number holds 53 bits. All are compared before one is changed. The scripts return `{0, mark, index}` for a refusal,
 * `{1, answer}` for success, `{2, text}` for a failure, and `{3, key}` for a key that holds no marks of this version.
 */
const RAISE = `
local marks = tonumber(ARGV[1])
local function raise()
  local function less(a, b)
    if #a ~= #b then return #a < #b end
    return a < b
  end
  local function older(mark, other)
    return less(mark[1], other[1]) or (mark[1] == other[1] and less(mark[2], other[2]))
  end
  local risen = {}
  for i = 1, marks do
    local shown, slots = {ARGV[3 * i - 1], ARGV[3 * i]}, {}
    for slot in string.gmatch(ARGV[3 * i + 1], '[^+]+') do slots[#slots + 1] = slot end
    local isReader = slots[1] and string.sub(slots[1], 1, 1) == 'r'
    local fields, values = {''}, nil
    if #slots > 0 then
      for _, slot in ipairs(slots) do fields[#fields + 1] = slot end
      values = redis.pcall('hmget', KEYS[i], unpack(fields))
    else
      local all = redis.pcall('hgetall', KEYS[i])
      values = all
      if not all.err then
        fields, values = {}, {}
        for j = 1, #all, 2 do fields[#fields + 1], values[#values + 1] = all[j], all[j + 1] end
      end
    end
    local foreign = {3, KEYS[i]}
    if values.err then return string.find(values.err, 'WRONGTYPE', 1, true) and foreign or values end
    local seen, highest = {}, nil
    for j, field in ipairs(fields) do
      if values[j] then
        local epoch, token = string.match(values[j], '^(%d+):(%d+):%d+$')
        if not epoch then return foreign end
        local mark = {epoch, token, values[j]}
        seen[field] = mark
        local counts = field == '' or not isReader
        if counts and older(shown, mark) and not (highest and older(mark, highest)) then highest = mark end
      end
    end
    if highest then return {0, highest[3], i} end
    if #slots == 0 then slots = {''}
    elseif not seen[''] then risen[#risen + 1] = {KEYS[i], '', shown[1] .. ':0'} end
    for _, slot in ipairs(slots) do
      if not seen[slot] or older(seen[slot], shown) then
        risen[#risen + 1] = {KEYS[i], slot, shown[1] .. ':' .. shown[2]}
      end
    end
  end
  if #risen == 0 then return nil end
  local time = redis.call('time')
  local now = time[1] .. string.format('%03d', math.floor(tonumber(time[2]) / 1000))
  for _, mark in ipairs(risen) do redis.call('hset', mark[1], mark[2], mark[3] .. ':' .. now) end
  return nil
end
local refused = raise()
if refused then return refused end
`

/** Raises the marks. */
export const raise: Script = scriptOf(`${RAISE}return {1}`)

/** Raises the marks, and sets the key after them to the argument after them. The rest are options of SET. */
export const set: Script = scriptOf(`${RAISE}
redis.call('set', KEYS[marks + 1], unpack(ARGV, 3 * marks + 2))
return {1}`)

const wrapped = new Map<string, Script>()

/** The most scripts of a program. More scripts mean that it builds them at run time. */
const MOST = 1_000

/** Raises the marks, then runs the caller's script with the other keys and arguments. */
export function guarded(source: string): Script {
  let script = wrapped.get(source)
  if (script) return script
  script = scriptOf(`${RAISE}
local function work(KEYS, ARGV)
${source}
end
local function rest(list, from)
  local copy = {}
  for i = from, #list do copy[i - from + 1] = list[i] end
  return copy
end
local done, answer = pcall(work, rest(KEYS, marks + 1), rest(ARGV, 3 * marks + 2))
if type(answer) == 'table' and answer.err then return {2, answer.err} end
if not done then return {2, tostring(answer)} end
return {1, answer}`)
  if (wrapped.size >= MOST) wrapped.clear()
  wrapped.set(source, script)
  return script
}

/** Returns all marks of a resource: a slot, its mark, the next slot, and so on. Empty if the key has another owner. */
export const read: Script = scriptOf(`
local all = redis.pcall('hgetall', KEYS[1])
return {1, all.err and {} or all}`)

/** Begins the epoch ARGV[1] and returns it, or nothing if the mark is in it or in a later one, or there is none. */
export const advance: Script = scriptOf(`
local mark = redis.call('hget', KEYS[1], '')
if not mark or tonumber(string.match(mark, '^(%d+):')) >= tonumber(ARGV[1]) then return {1} end
local time = redis.call('time')
redis.call('hset', KEYS[1], '', ARGV[1] .. ':0:' .. time[1] .. '000')
return {1, ARGV[1]}`)

/** Deletes the marks of a resource unless one was raised within the last ARGV[1] milliseconds. Returns their number. */
export const prune: Script = scriptOf(`
local time = redis.call('time')
local limit = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) - tonumber(ARGV[1])
local values = redis.call('hvals', KEYS[1])
for _, value in ipairs(values) do
  if tonumber(string.match(value, ':(%d+)$')) >= limit then return {1, 0} end
end
redis.call('del', KEYS[1])
return {1, #values}`)

function scriptOf(source: string): Script {
  return { source, sha: createHash('sha1').update(source).digest('hex') }
}
