import { execFileSync } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { newFolder } from '../../lab/servers/folder.ts'
import { ROOT } from '../script-node.ts'

/** The older version. Choose the oldest commit from which a rolling upgrade must work. */
const COMMIT = '2778f23e9e19037bf04edd5b1e05ff11d0b62e88'

/** The stores whose format has another number since. There the two versions refuse each other's leases. */
export const CHANGED: ReadonlySet<string> = new Set(['etcd'])

/**
 * Unpacks the sources of the older version into a temporary folder, with the installed packages. A checkout without
 * its history fetches the commit.
 */
export function olderVersion(): string {
  if (!isHere()) fetch()
  const folder = newFolder('older')
  const archive = git('archive', COMMIT, 'src', 'package.json')
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

function isHere(): boolean {
  try {
    git('cat-file', '-e', `${COMMIT}^{commit}`)
    return true
  } catch {
    return false
  }
}

function fetch(): void {
  try {
    git('fetch', '--quiet', '--depth=1', 'origin', COMMIT)
  } catch (cause) {
    const cure = 'Fetch the whole history (git fetch --unshallow), or correct COMMIT in test/mixed/older.ts.'
    throw new Error(`the older version, commit ${COMMIT}, is not in this repository or at its origin. ${cure}`, {
      cause,
    })
  }
}

function git(...args: string[]): Buffer {
  return execFileSync('git', args, {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 2 ** 26,
    timeout: 60_000,
  })
}
