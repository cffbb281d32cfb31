import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from './script-node.ts'

// Delete this file with the section that it asks for, once the names are reserved.
test('a page that installs or runs packages from npm says that their names are not reserved yet', () => {
  const pages = globSync(['README.md', 'lab/README.md', 'drop-ins/*/README.md', 'docs/**/*.md'], { cwd: ROOT })
  const silent = pages.filter(page => {
    const text = readFileSync(join(ROOT, page), 'utf8')
    return (
      /\bnpm (?:i|install)\b[^`\n]*\bholdfast|(?<!not `)npx holdfast|npm:holdfast/.test(text) &&
      !/\(\S*#before-it-is-on-npm\)|^#+ Before it is on npm$|script\/release/m.test(text)
    )
  })
  expect(silent).toEqual([])
})
