import { createHash } from 'node:crypto'

/** A Lua script, and the SHA-1 by which Redis caches it. */
export interface Script {
  readonly source: string
  readonly sha: string
}

/**
 * ARGV[1] is the number of marks. Their keys come first in KEYS; a mark is `epoch:token:time`, with the time of the last
 * change in milliseconds. For each of them ARGV goes on with an epoch and a token in decimal. They are compared as text,
 * because a Lua number holds 53 bits. All are compared before one is changed. The scripts return `{0, mark, index}` for a
 * refusal, `{1, answer}` for success, and `{2, text}` for a failure.
 */
const RAISE = `
local marks = tonumber(ARGV[1])
local function raise()
  local function less(a, b)
    if #a ~= #b then return #a < #b end
    return a < b
  end
  local risen = {}
  for i = 1, marks do
    local epoch, token = ARGV[2 * i], ARGV[2 * i + 1]
    local mark = redis.pcall('get', KEYS[i])
    local isSame = false
    if mark then
      local seen, highest = string.match(type(mark) == 'string' and mark or '', '^(%d+):(%d+):%d+$')
      if not seen then return {2, 'the key ' .. KEYS[i] .. ' is no mark, or one of another version'} end
      if less(epoch, seen) or (epoch == seen and less(token, highest)) then return {0, mark, i} end
      isSame = epoch == seen and token == highest
    end
    if not isSame then table.insert(risen, {KEYS[i], epoch .. ':' .. token}) end
  end
  if #risen == 0 then return nil end
  local time = redis.call('time')
  local now = time[1] .. string.format('%03d', math.floor(tonumber(time[2]) / 1000))
  for i = 1, #risen do redis.call('set', risen[i][1], risen[i][2] .. ':' .. now) end
  return nil
end
local refused = raise()
if refused then return refused end
`

/** Raises the marks. */
export const raise: Script = scriptOf(`${RAISE}return {1}`)

/** Raises the marks, and sets the key after them to the argument after them. The rest are options of SET. */
export const set: Script = scriptOf(`${RAISE}
redis.call('set', KEYS[marks + 1], unpack(ARGV, 2 * marks + 2))
return {1}`)

const wrapped = new Map<string, Script>()

/** A program has few scripts. More than this means that it builds them at run time. */
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
local done, answer = pcall(work, rest(KEYS, marks + 1), rest(ARGV, 2 * marks + 2))
if type(answer) == 'table' and answer.err then return {2, answer.err} end
if not done then return {2, tostring(answer)} end
return {1, answer}`)
  if (wrapped.size >= MOST) wrapped.clear()
  wrapped.set(source, script)
  return script
}

/** Begins the epoch ARGV[1] and returns it, or nothing if the mark is in it or in a later one, or there is none. */
export const advance: Script = scriptOf(`
local mark = redis.call('get', KEYS[1])
if not mark or tonumber(string.match(mark, '^(%d+):')) >= tonumber(ARGV[1]) then return {1} end
local time = redis.call('time')
redis.call('set', KEYS[1], ARGV[1] .. ':0:' .. time[1] .. '000')
return {1, ARGV[1]}`)

/** Removes the mark if it has not changed since it was read. */
export const remove: Script = scriptOf(`
if redis.call('get', KEYS[1]) ~= ARGV[1] then return {1, 0} end
return {1, redis.call('del', KEYS[1])}`)

function scriptOf(source: string): Script {
  return { source, sha: createHash('sha1').update(source).digest('hex') }
}
