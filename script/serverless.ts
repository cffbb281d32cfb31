/**
 * Prints the test files that import no code which starts servers: the tests of `script/test --local`. Away from Linux they
 * do without namespaces and /proc. With --library only those of the library, for Windows: without the command line, signals,
 * links and modes of files.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { reached } from './reached.ts'

const ROOT = join(import.meta.dirname, '..')
const SERVERS = join(ROOT, 'lab/servers/binary.ts')
const NAMESPACE = join(ROOT, 'test/namespace.ts')
const LINUX = /'unshare'|\/proc\//
const POSIX = /(?:symlink|link|chmod)Sync|SIG(?:STOP|KILL)|0o\d|'(?:\/bin\/)?sh'|\/(?:tmp|proc|dev)\//

const isLibrary = process.argv[2] === '--library'
const tests = globSync('{src,lab,drop-ins,test,examples}/**/*.test.ts', { cwd: ROOT })
console.log(
  tests
    .map(path => path.replaceAll('\\', '/'))
    .filter(path => !reached(join(ROOT, path)).has(SERVERS))
    .filter(path => process.platform === 'linux' || !isForLinux(path))
    .filter(path => !isLibrary || isOfLibrary(path))
    .sort()
    .join('\n'),
)

function isForLinux(path: string): boolean {
  return reached(join(ROOT, path)).has(NAMESPACE) || LINUX.test(readFileSync(join(ROOT, path), 'utf8'))
}

function isOfLibrary(path: string): boolean {
  return /^src\/(?!cli\/)/.test(path) && !POSIX.test(readFileSync(join(ROOT, path), 'utf8'))
}
