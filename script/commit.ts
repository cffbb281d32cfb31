import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')

/** The commit of this checkout, and whether it has other changes than those in the folder of the results. */
export function commit(results: string): string {
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim()
  const isChanged = git('status', '--porcelain', '--', '.', `:!${results}`) !== ''
  return git('rev-parse', '--short', 'HEAD') + (isChanged ? ' with changes' : '')
}
