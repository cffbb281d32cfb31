// Before `npm publish`: `node script/npm-files.ts` makes the links absolute that lead out of the package, and leaves out the
// workspaces of package.json. Do not commit it.
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join, matchesGlob } from 'node:path'
import { npmPage } from './manifest.ts'

const ROOT = join(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const write = (path: string, text: string): void => writeFileSync(join(ROOT, path), text)

const root = read('package.json')
const { workspaces: _, ...manifest } = JSON.parse(root) as { workspaces: unknown; files: string[] }
const isShipped = (path: string): boolean => manifest.files.some(pattern => matchesGlob(path, pattern))

write(
  'README.md',
  npmPage('README.md', read('README.md'), root, () => false),
) // the page on npm has no other files
for (const path of ['CHANGELOG.md', ...globSync('docs/**/*.md', { cwd: ROOT })])
  write(path, npmPage(path, read(path), root, isShipped))
write('package.json', `${JSON.stringify(manifest, null, 2)}\n`)
