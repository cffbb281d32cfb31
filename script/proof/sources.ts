import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { ENGINES } from '../../src/engines.ts'
import { reached } from '../reached.ts'

const ROOT = join(import.meta.dirname, '../..')

/** What every client of the lab runs. */
const COMMON = ['src/core/locks.ts', 'src/sharing/sharing.ts']

/** Comments on lines of their own, as the formatter leaves them. A proof is of what runs. */
const COMMENTS = /^\s*(?:\/\*\*[\s\S]*?\*\/|\/\/.*)\n/gm

/** What people read of the guarantees of a store decides nothing. */
const SENTENCES = /(?<=^[ \t]*(?:\w+: |[?:] )?)(['"`]).* .*\1,?|\s+/gm

/**
 * A hash of the sources that clients of this engine of the lab run, without comments and the words of guarantees: the core,
 * sharing, and the store with its scripts.
 */
export function sourcesOf(engine: string): string {
  const { name } = ENGINES.find(({ name }) => engine === name || engine.startsWith(`${name}-`)) ?? {}
  if (!name) throw new Error(`${engine} is no engine of src/engines.ts`)
  const files = new Set<string>()
  for (const path of [...COMMON, `src/stores/${name}/index.ts`]) reached(join(ROOT, path), files)
  const folders = new Set(Array.from(files, dirname))
  const scripts = [...folders].flatMap(folder => globSync(join(folder, '{.,lua,lua/shared}/*.lua')))
  const hash = createHash('sha256')
  for (const path of [...files, ...scripts].toSorted())
    hash.update(path.slice(ROOT.length)).update(whatRuns(path, readFileSync(path, 'utf8')))
  return hash.digest('hex').slice(0, 16)
}

/** What the text of a file of sources lets a computer do. */
export function whatRuns(path: string, text: string): string {
  const source = text.replaceAll(COMMENTS, '')
  return basename(path) === 'guarantees.ts' ? source.replaceAll(SENTENCES, '') : source
}
