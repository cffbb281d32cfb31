/** Prints the test files that import no code which starts servers: the tests of `script/test --local`. */
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const SERVERS = join(ROOT, 'lab/servers/binary.ts')
const known = new Map<string, readonly string[]>()

const tests = globSync(join(ROOT, '{src,lab,drop-ins,test,examples}/**/*.test.ts'))
console.log(
  tests
    .filter(path => !reached(path).has(SERVERS))
    .sort()
    .join('\n'),
)

function reached(path: string, seen = new Set<string>()): Set<string> {
  if (seen.has(path)) return seen
  seen.add(path)
  const next = known.get(path) ?? imported(path)
  known.set(path, next)
  for (const each of next) reached(each, seen)
  return seen
}

/** The files of this checkout that it loads, without type imports. */
function imported(path: string): string[] {
  const loads = /^(?:import|export)(?! type)[^'`]*'(\.[^']+\.ts)'|\bimport\('(\.[^']+\.ts)'\)/gm
  return Array.from(readFileSync(path, 'utf8').matchAll(loads), ([, named, dynamic]) =>
    join(dirname(path), named ?? dynamic ?? ''),
  )
}
