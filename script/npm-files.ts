// Writes package.json and the pages of the main package into a folder, as npm gets them: `node script/npm-files.ts FOLDER`.
// Links that lead out of the package are absolute, once package.json has a repository, and it has no workspaces.
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, matchesGlob } from 'node:path'
import { npmPage } from './manifest.ts'

const ROOT = join(import.meta.dirname, '..')
const [folder = ''] = process.argv.slice(2)
const root = read('package.json')
const { workspaces: _, ...manifest } = JSON.parse(root) as { workspaces: unknown; files: string[]; repository?: object }
const isShipped = (path: string): boolean => manifest.files.some(pattern => matchesGlob(path, pattern))

page('README.md', () => false) // the page on npm has no other files
for (const path of ['CHANGELOG.md', ...globSync('docs/**/*.md', { cwd: ROOT })]) page(path, isShipped)
write('package.json', `${JSON.stringify(manifest, null, 2)}\n`)

function page(path: string, isThere: (path: string) => boolean): void {
  write(path, manifest.repository ? npmPage(path, read(path), root, isThere) : read(path))
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

function write(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), text)
}
