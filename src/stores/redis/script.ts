import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { LONGEST_REQUEST } from '../../contract/time.ts'
import type { Wire } from './client.ts'

/** Milliseconds for which an unused name keeps its last token if no counter of the server covers that token. */
export const MEMORY = 86_400_000

/** The parameters of a release. They say how long an unknown claim is refused. */
export const FORGET: string = `${LONGEST_REQUEST} 0 0 `

/** Lua that a server runs as one atomic step. */
export interface Program {
  readonly source: string
  /** The hash that names the program once the server has loaded it. */
  readonly sha: string
}

/** The program for all requests of a store. */
export interface Script extends Program {
  readonly touches: Touches
}

/** For each verb, the suffixes of the other keys that it touches. The id of the claim follows `GONE`. */
type Touches = Readonly<Record<string, readonly string[]>>

/** The suffix of a tombstone's key. The id of the claim follows it. */
export const GONE = ':gone:'

/** The parts of a script. Files are named by their paths in `src/stores`, without `.lua`. */
export interface Parts {
  readonly touches: Touches
  /** Lua declares these, as all numbers that both sides must agree on. */
  readonly constants: Readonly<Record<string, number>>
  /** What the verbs need. */
  readonly base: readonly string[]
  /** The rest of the functions. They are fields of a table `made`, which `rare()` makes once a call needs one of them. */
  readonly rare: readonly string[]
  /** Functions of the table `verbs`: those that run often, with `(key, id, ttl, life, queues, rest)`. */
  readonly verbs: readonly string[]
}

/**
 * The one script that a store calls. It takes a list of requests, and returns the server's time and an answer to each
 * request. A request that fails does not fail the others. README.md describes the keys and the requests.
 *
 * The code that every acquire and release runs is written for speed. To make all functions takes longer than most requests.
 * In a batch each request takes about 5 us. Of that a command takes 0.3 to 0.5, formatting a number 0.3, and matching `%S+`
 * twice as long as `[^ ]+`. `SET` with `PX` takes longer than `SET` and `PEXPIRE`, and `SETRANGE` takes less than either.
 * Tokens are written with `%.0f`, because Lua itself prints 1.7e15 as `1.7e+15`.
 */
export function scriptOf({ touches, constants, base, rare, verbs }: Parts): Script {
  const declared = Object.entries(constants).map(([name, value]) => `local ${name} = ${value}\n`)
  const source = `${declared.join('')}${luaOf('redis/lua/clock', 'redis/lua/call', ...base)}
local made
local function rare()
  if made then return made end
  made = {}
${luaOf(...rare)}
  return made
end
local verbs = setmetatable({}, { __index = function(_, verb) return rare()[verb] end })
${luaOf(...verbs, 'redis/lua/answer')}`
  return { ...programOf(source), touches }
}

/** The program in one file. */
export function programIn(file: string): Program {
  return programOf(luaOf(file))
}

/** The text of files. The package has no files of Lua: `script/lua.ts` puts the finished programs into it. */
function luaOf(...files: readonly string[]): string {
  return files.map(file => readFileSync(new URL(`../${file}.lua`, import.meta.url), 'utf8')).join('\n')
}

function programOf(source: string): Program {
  return { source, sha: createHash('sha1').update(source).digest('hex') }
}

/**
 * Calls a script by its hash if that is in `loaded`. Otherwise, and if the server does not have the script, sends the
 * source.
 */
export function evaluate(
  wire: Wire,
  loaded: Set<string>,
  { source, sha }: Program,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  const call = (command: string, script: string): Promise<unknown> =>
    wire.call([command, script, `${keys.length}`, ...keys, ...args], keys[0])
  const load = async (): Promise<unknown> => {
    const answer = await call('eval', source)
    loaded.add(sha)
    return answer
  }
  if (!loaded.has(sha)) return load()
  return call('evalsha', sha).catch(error => {
    if (!/NOSCRIPT|NoScript/.test(String(error))) throw error
    return load()
  })
}
