import { accessSync, constants, globSync, readdirSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { LeaseError } from '../../errors.ts'

/** Where `script/setup` unpacks Debian's packages when it may not install them. */
export const UNPACKED: string = join(import.meta.dirname, '../../../.tools/servers/usr')

export interface Binary {
  readonly path: string
  /** What its process needs in addition to find its shared libraries. */
  readonly env: Readonly<Record<string, string>>
}

/**
 * A program on `PATH`, else one that `script/setup` unpacked into the checkout. Throws naming the Debian package that
 * brings it: a test that needs a missing server fails, it never skips.
 */
export function findBinary(name: string, debianPackage: string, unpacked: string = UNPACKED): Binary {
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
