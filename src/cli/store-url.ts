import { chmodSync, mkdirSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { EXIT, Failure, Usage } from './failure.ts'
import { mask, type Output } from './output.ts'

/**
 * The store to use: `--store`, then `HOLDFAST_STORE`, else one file of this user on this machine, which is said.
 * In production that default is refused: with a file per host, every host would run the job.
 */
export function storeUrl(option: string | undefined, output: Output): string {
  const given = option ?? process.env.HOLDFAST_STORE
  if (given === undefined) return embedded(output)
  const source = option === undefined ? 'HOLDFAST_STORE' : '--store'
  if (given === '')
    throw new Usage(`${source} is empty: expected a URL such as redis://host:6379 or sqlite:/path/to/file`)
  if (/^memory:/i.test(given)) {
    throw new Usage(`${source} memory: lasts as long as this process and excludes nobody: use sqlite:/path/to/file`)
  }
  if (option !== undefined && mask(option) !== option)
    output.tell(
      'password',
      'everybody on this machine can read the password in --store (ps): use HOLDFAST_STORE instead',
    )
  // The command may go to another folder, and must find the same file there.
  return /^sqlite:[^/:]/i.test(given) ? `sqlite:${resolve(given.slice('sqlite:'.length))}` : given
}

function embedded(output: Output): string {
  const { NODE_ENV, KUBERNETES_SERVICE_HOST } = process.env
  const production =
    NODE_ENV === 'production' ? 'NODE_ENV=production' : KUBERNETES_SERVICE_HOST && 'KUBERNETES_SERVICE_HOST'
  if (production) {
    throw new Usage(
      `in production (${production}) the store must be said, since a file on each host excludes nobody on another: ` +
        'set HOLDFAST_STORE, for example to redis://host:6379 (or to sqlite:/path/to/file for this machine only)',
    )
  }
  const folder = stateFolder()
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    // Another program or a user may have made it. A user who may read the file in it could stop every lease.
    if ((statSync(folder).mode & 0o077) !== 0) chmodSync(folder, 0o700)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Failure(
      EXIT.unavailable,
      'STORE_UNAVAILABLE',
      `the folder ${folder} of the default store cannot be made or kept private (${code}): set HOLDFAST_STORE or XDG_STATE_HOME`,
    )
  }
  const path = join(folder, 'leases.db')
  output.tell('store', `store sqlite:${path}, this machine and user only; set HOLDFAST_STORE to share`, { store: path })
  return `sqlite:${path}`
}

function stateFolder(): string {
  const { XDG_STATE_HOME } = process.env
  // The specification of XDG says that a relative path is to be ignored.
  if (process.platform !== 'darwin' && XDG_STATE_HOME && isAbsolute(XDG_STATE_HOME))
    return join(XDG_STATE_HOME, 'holdfast')
  let home = ''
  try {
    home = homedir()
  } catch {
    // No HOME, and the user is not in the password file: as in many containers.
  }
  if (!isAbsolute(home)) {
    throw new Failure(
      EXIT.unavailable,
      'STORE_UNAVAILABLE',
      'HOME is not set, so there is no place for the default store: set HOLDFAST_STORE, HOME or XDG_STATE_HOME',
    )
  }
  return process.platform === 'darwin'
    ? join(home, 'Library', 'Application Support', 'holdfast')
    : join(home, '.local', 'state', 'holdfast')
}
