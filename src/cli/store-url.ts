import { lstatSync, mkdirSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { EXIT, Failure, Usage } from './failure.ts'
import { mask, type Output } from './output.ts'

/**
 * The URL of the store: `--store`, else `HOLDFAST_STORE`, else a file of this user, with a message. In production the
 * file is refused: with a file on each host, every host would run the job. Throws `Failure`.
 */
export function storeUrl(option: string | undefined, output: Output): string {
  const given = option ?? process.env.HOLDFAST_STORE
  if (given === undefined) return defaultUrl(output)
  const source = option === undefined ? 'HOLDFAST_STORE' : '--store'
  if (given === '')
    throw new Usage(`${source} is empty: expected a URL such as redis://host:6379 or sqlite:/path/to/file`)
  if (/^memory:/i.test(given)) {
    throw new Usage(`${source} memory: is private to this process, so it locks nothing: use sqlite:/path/to/file`)
  }
  if (option !== undefined && mask(option) !== option)
    output.info(
      'password',
      'every user of this machine can read the password in --store (ps): use HOLDFAST_STORE instead',
    )
  // A holdfast inside the command may have another working directory and must find the same file.
  return /^sqlite:[^/:]/i.test(given) ? `sqlite:${resolve(given.slice('sqlite:'.length))}` : given
}

function defaultUrl(output: Output): string {
  const { NODE_ENV, KUBERNETES_SERVICE_HOST } = process.env
  const production =
    NODE_ENV === 'production' ? 'NODE_ENV=production' : KUBERNETES_SERVICE_HOST && 'KUBERNETES_SERVICE_HOST'
  if (production) {
    throw new Usage(
      `no store is given, and in production (${production}) there is no default, because a file locks one host only: ` +
        'set HOLDFAST_STORE, for example to redis://host:6379 (or sqlite:/path/to/file for this host only)',
    )
  }
  const folder = stateFolder()
  let problem: string | undefined
  try {
    problem = unsafe(folder)
  } catch (error) {
    problem = `cannot be created (${(error as NodeJS.ErrnoException).code})`
  }
  if (problem !== undefined) {
    const cure = 'set HOLDFAST_STORE or XDG_STATE_HOME'
    throw new Failure(
      EXIT.unavailable,
      'STORE_UNAVAILABLE',
      `the folder ${folder} of the default store ${problem}: ${cure}`,
    )
  }
  const path = join(folder, 'leases.db')
  output.info(
    'store',
    `leases are in sqlite:${path}, for this user and machine only; set HOLDFAST_STORE to share them`,
    { store: path },
  )
  return `sqlite:${path}`
}

/**
 * Creates the folder. If leases must not be kept in it, returns why. Whoever can write to it can break every lease. If
 * root runs with the HOME of another user, a link there would let that user choose where root creates files.
 */
function unsafe(folder: string): string | undefined {
  let above = dirname(folder)
  while (!statSync(above, { throwIfNoEntry: false })) above = dirname(above)
  if (![0, process.geteuid?.()].includes(statSync(above).uid)) return `is below ${above}, which another user owns`
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const stats = lstatSync(folder)
  if (!stats.isDirectory()) return 'is a link'
  if (stats.uid !== (process.geteuid?.() ?? 0)) return 'belongs to another user'
  // Windows has no modes: there only its user can write to the folder of a profile.
  if (process.geteuid && (stats.mode & 0o022) !== 0) return 'can be written to by other users (run chmod go-w on it)'
  return undefined
}

function stateFolder(): string {
  const { XDG_STATE_HOME } = process.env
  // The XDG specification says to ignore a relative path.
  if (process.platform !== 'darwin' && XDG_STATE_HOME && isAbsolute(XDG_STATE_HOME))
    return join(XDG_STATE_HOME, 'holdfast')
  let home = ''
  try {
    home = homedir()
  } catch {
    // There is neither HOME nor an entry in the password file, as in many containers.
  }
  if (!isAbsolute(home)) {
    throw new Failure(
      EXIT.unavailable,
      'STORE_UNAVAILABLE',
      'HOME is not set, so the default store has no path: set HOLDFAST_STORE, HOME or XDG_STATE_HOME',
    )
  }
  return process.platform === 'darwin'
    ? join(home, 'Library', 'Application Support', 'holdfast')
    : join(home, '.local', 'state', 'holdfast')
}
