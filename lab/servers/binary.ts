import { accessSync, constants, globSync, readdirSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { LeaseError } from '../../src/contract/errors.ts'

/** Where `script/setup` unpacks Debian's packages when it may not install them. */
export const UNPACKED: string = join(import.meta.dirname, '../../.tools/servers/usr')

/** Where `script/setup --newest-servers` unpacks the newest servers. Programs there find their own libraries. */
export const NEWEST: string = join(import.meta.dirname, '../../.tools/newest/usr')

const GENERATIONS = ['installed', 'newest', 'valkey'] as const

/** Which servers are started: those of the machine, the newest, or the newest with Valkey instead of Redis. */
export type Generation = (typeof GENERATIONS)[number]

/** The programs of `NEWEST`; all others are those of the machine. */
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
  /** What its process needs in addition to find its shared libraries. */
  readonly env: Readonly<Record<string, string>>
}

/**
 * A program on `PATH`, else one that `script/setup` unpacked into the checkout. Other generations use only what was
 * unpacked for them. Throws an error that names the Debian package: a test that needs a missing server fails, it never
 * skips.
 */
export function findBinary(
  name: string,
  debianPackage: string,
  generation: Generation = chosenGeneration(),
  unpacked: string = UNPACKED,
): Binary {
  if (generation !== 'installed' && HAS_NEWEST.has(name)) return findNewest(name, generation)
  for (const folder of [...(process.env.PATH ?? '').split(delimiter), ...foldersIn('/usr')]) {
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

/** The package of Debian that brings it is the quickest way to it; a checkout has another. */
export function missing(name: string, debianPackage: string): LeaseError {
  const cure = `install Debian's package with: apt-get install ${debianPackage}`
  return new LeaseError('DRIVER_MISSING', `${name} was not found: ${cure}, or in a checkout: ./script/setup --servers`)
}

/** Debian keeps the programs of PostgreSQL and Java apart, by version, and some servers where only root looks for them. */
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
