// Rewrites README.md with absolute links, for the npm page: `node script/npm-readme.ts`, before `npm publish`. Do not commit it.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { npmReadme } from './manifest.ts'

const ROOT = join(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

writeFileSync(join(ROOT, 'README.md'), npmReadme(read('README.md'), read('package.json')))
