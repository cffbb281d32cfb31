// Writes generated files and parts of files: `npm run generate`. With --check it reports stale ones and writes nothing.
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { commandLinePage, faultsPage } from './command-line.ts'
import { errorsPage } from './errors.ts'
import { eventsPage } from './events.ts'
import { withExamples } from './examples.ts'
import { manifestOf, memberManifestOf } from './manifest.ts'
import { optionsPage } from './options.ts'
import { performancePage, readmePage } from './performance.ts'
import { pages } from './proof/guarantees.ts'

const ROOT = join(import.meta.dirname, '..')

const isCheck = process.argv[2] === '--check'
const generated = new Map<string, (text: string) => string>([
  ['package.json', manifestOf],
  ...globSync('{lab,drop-ins/*}/package.json', { cwd: ROOT }).map(memberManifest),
  ['README.md', readmePage],
  ['docs/performance.md', performancePage],
  ['docs/reference/cli.md', commandLinePage],
  ['lab/judging.md', faultsPage],
  ['docs/reference/options.md', optionsPage],
  ['docs/reference/errors.md', errorsPage],
  ['docs/reference/events.md', eventsPage],
  ...(await pages()),
  ...globSync('docs/{guides,sharing,integrations}/*.md', { cwd: ROOT }).map((path): [string, typeof withExamples] => [
    path,
    withExamples,
  ]),
])
const stale = Array.from(generated).flatMap(([path, change]) => {
  const file = join(ROOT, path)
  const text = readFileSync(file, 'utf8')
  const changed = change(text)
  if (changed === text) return []
  if (!isCheck) writeFileSync(file, changed)
  return [path]
})
if (isCheck && stale.length > 0) {
  process.stderr.write(`not up to date: ${stale.join(', ')}; run npm run generate\n`)
  process.exitCode = 1
}

/** The manifest of a package other than the main one. */
function memberManifest(path: string): [string, (text: string) => string] {
  return [path, text => memberManifestOf(text, readFileSync(join(ROOT, 'package.json'), 'utf8'), dirname(path))]
}
