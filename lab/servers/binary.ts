import { accessSync, constants, globSync, readdirSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { LeaseError } from '../../src/index.ts'

/** Where `script/setup` puts what it does not install on the machine. */
export const TOOLS: string = join(import.meta.dirname, '../../.tools')

/** Where `script/setup` unpacks Debian's packages if it may not install them. */
export const UNPACKED: string = join(TOOLS, 'servers/usr')

/** Where `script/setup --newest-servers` unpacks the newest servers. Programs there find their own libraries. */
export const NEWEST: string = join(TOOLS, 'newest/usr')

const GENERATIONS = ['installed', 'newest', 'valkey'] as const

/** Which servers are started: those of the machine, the newest, or the newest with Valkey instead of Redis. */
export type Generation = (typeof GENERATIONS)[number]

/** Where `script/setup --servers` unpacks newer versions of servers that are too old on the machine. They come first. */
const NEWER = join(TOOLS, 'newer/usr')

/** The programs in `NEWEST`. All others are those of the machine. */
const HAS_NEWEST: ReadonlySet<string> = new Set(
  'redis-server redis-cli etcd postgres initdb pg_basebackup pgbouncer'.split(' '),
)

/** The value of the environment variable HOLDFAST_SERVERS. @default 'installed' */
export function chosenGeneration(): Generation {
  const value = process.env.HOLDFAST_SERVERS || 'installed'
  const generation = GENERATIONS.find(known => known === value)
  if (generation) return generation
  throw new LeaseError('INVALID_ARGUMENT', `HOLDFAST_SERVERS is ${value}; expected one of: ${GENERATIONS.join(', ')}`)
}

export interface Binary {
  readonly path: string
  /** Environment variables that let it find its shared libraries. */
  readonly env: Readonly<Record<string, string>>
}

/**
 * A program on `PATH`, or one that `script/setup` unpacked into the checkout. Other generations use only what was unpacked
 * for them. Throws an error that names the Debian package.
 */
export function findBinary(
  name: string,
  debianPackage: string,
  generation: Generation = chosenGeneration(),
  unpacked: string = UNPACKED,
): Binary {
  if (generation !== 'installed' && HAS_NEWEST.has(name)) return findNewest(name, generation)
  for (const folder of [...foldersIn(NEWER), ...(process.env.PATH ?? '').split(delimiter), ...foldersIn('/usr')]) {
    const path = join(folder, name)
    if (isExecutable(path)) return { path, env: {} }
  }
  for (const folder of foldersIn(unpacked)) {
    const path = join(folder, name)
    if (isExecutable(path)) return { path, env: { LD_LIBRARY_PATH: libraries(unpacked).join(delimiter) } }
  }
  throw missing(name, debianPackage)
}

function findNewest(name: string, generation: Generation): Binary {
  const program = generation === 'valkey' ? name.replace('redis-', 'valkey-') : name
  for (const folder of foldersIn(NEWEST)) {
    const path = join(folder, program)
    if (isExecutable(path)) return { path, env: {} }
  }
  throw missingNewest(program)
}

/** The error for a generation that only a checkout has. */
export function missingNewest(name: string): LeaseError {
  return new LeaseError('DRIVER_MISSING', `${name} was not found in .tools/newest: run ./script/setup --newest-servers`)
}

/** The error for a program that is not installed. */
export function missing(name: string, debianPackage: string): LeaseError {
  const cure = `install Debian's package with: apt-get install ${debianPackage}`
  return new LeaseError('DRIVER_MISSING', `${name} was not found: ${cure}, or in a checkout: ./script/setup --servers`)
}

/** Debian has the programs of PostgreSQL and Java in folders by version, and some servers in `sbin`. */
function foldersIn(prefix: string): string[] {
  return [
    join(prefix, 'bin'),
    join(prefix, 'sbin'),
    ...globSync(join(prefix, 'lib/{postgresql,jvm}/*/bin')).sort().reverse(),
  ]
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

function libraries(unpacked: string): string[] {
  const folder = join(unpacked, 'lib')
  return readdirSync(folder, { withFileTypes: true })
    .filter(entry => entry.isDirectory())
    .map(entry => join(folder, entry.name))
}
