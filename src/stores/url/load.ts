import { realpathSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { LeaseError } from '../../contract/errors.ts'

/** The end of the message of `DRIVER_MISSING`, after the command that installs a client. */
export const WHERE =
  'where holdfast is installed (npm i -g for a global one), or set HOLDFAST_DRIVERS to the folder of a project that has it; a bundler must keep holdfast external'

/** The URL of this file. In a CommonJS bundle esbuild leaves it undefined, so no library is found near this file. */
const HERE: string | undefined = import.meta.url

/**
 * Loads a client library. Returns `undefined` if it is not installed. It searches where this package is installed, then the
 * folder in HOLDFAST_DRIVERS, then the project of the current folder if this same package is installed there too (`npm
 * link`, a workspace). It does not run code of any other current folder, because anybody may own that. It uses `require`,
 * which works in Jest without a flag and also loads ECMAScript modules.
 * @throws LeaseError DRIVER_MISSING if others may write to the library of the current folder
 */
export function load(name: string): unknown {
  const { HOLDFAST_DRIVERS: chosen } = process.env
  const own = (HERE && loadFrom(HERE, name)) ?? (chosen && loadFrom(join(resolve(chosen), 'any.js'), name))
  if (own) return own
  const project = join(process.cwd(), 'any.js')
  const path = resolveFrom(project, name)
  // Windows does not tell who may write to a file, so nothing is loaded from there.
  if (path === undefined || !process.geteuid || !hasThisPackage(project)) return undefined
  const open = openToOthers(path)
  if (open === undefined) return loadFrom(project, name)
  const text = `${name} was not loaded from ${path}, because others own or may write to ${open}`
  throw new LeaseError(
    'DRIVER_MISSING',
    `${text}: let only yourself own and write it, or set HOLDFAST_DRIVERS to the folder to load from`,
  )
}

function loadFrom(from: string, name: string): unknown {
  return ifFound(name, () => createRequire(from)(name))
}

function resolveFrom(from: string, name: string): string | undefined {
  return ifFound(name, () => realpathSync(createRequire(from).resolve(name)))
}

function ifFound<Found>(name: string, find: () => Found): Found | undefined {
  try {
    return find()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'MODULE_NOT_FOUND' && message.includes(`'${name}'`)) return undefined
    throw error
  }
}

function hasThisPackage(project: string): boolean {
  if (HERE === undefined) return false
  const manifest = resolveFrom(project, 'holdfast/package.json')
  return manifest !== undefined && realpathSync(fileURLToPath(HERE)).startsWith(dirname(manifest) + sep)
}

/** The file, or the first folder above it, through which a user other than you and root could change the library. */
function openToOthers(path: string): string | undefined {
  const { uid, gid, mode } = statSync(path)
  const others = gid === uid ? 0o002 : 0o022 // a group with the number of its user has no other member
  const isSticky = (mode & 0o1000) !== 0 // like /tmp, where users can replace only their own files
  if ((uid !== 0 && uid !== process.geteuid?.()) || (!isSticky && (mode & others) !== 0)) return path
  return path === dirname(path) ? undefined : openToOthers(dirname(path))
}
