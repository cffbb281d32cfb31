import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { ENGINES } from '../../src/engines.ts'
import { reached } from '../reached.ts'

const ROOT = join(import.meta.dirname, '../..')

/** What every client of the lab runs. */
const COMMON = ['src/core/core.ts', 'src/core/locks.ts', 'src/sharing/permits.ts']

/** Comments on lines of their own, as the formatter leaves them. A proof is of what runs. */
const COMMENTS = /^\s*(?:\/\*\*(?:(?!\*\/)[\s\S])*\*\/|\/\/.*)\n/gm

/** What people read of the guarantees of a store decides nothing. The order does: waiters are judged by it. */
const SENTENCES = /(?<=^[ \t]*(?:(?!order)\w+: |[?:] )?)(['"`]).* .*\1,?|\s+/gm

/** A hash of what the files of this engine of the lab let a computer do. */
export function sourcesOf(engine: string): string {
  const hash = createHash('sha256')
  for (const path of filesOf(engine)) hash.update(path).update(whatRuns(path, readFileSync(join(ROOT, path), 'utf8')))
  return hash.digest('hex').slice(0, 16)
}

/** The sources that clients of this engine of the lab run: the core, sharing, and the store with its URL and its scripts. */
export function filesOf(engine: string): string[] {
  const { name } = ENGINES.find(({ name }) => engine === name || engine.startsWith(`${name}-`)) ?? {}
  if (!name) throw new Error(`${engine} is no engine of src/engines.ts`)
  const files = new Set<string>()
  const store = ['index', 'open'].map(file => `src/stores/${name}/${file}.ts`)
  for (const path of [...COMMON, ...store]) reached(join(ROOT, path), files)
  const folders = new Set(Array.from(files, dirname))
  const scripts = [...folders].flatMap(folder => globSync(join(folder, '{.,lua,lua/*}/*.lua')))
  return [...files, ...scripts].map(path => relative(ROOT, path)).toSorted()
}

/** What the text of a file of sources lets a computer do. */
export function whatRuns(path: string, text: string): string {
  const source = text.replaceAll(COMMENTS, '')
  return basename(path) === 'guarantees.ts' ? source.replaceAll(SENTENCES, '') : source
}
