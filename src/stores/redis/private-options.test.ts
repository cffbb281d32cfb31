import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from '../../../test/script-node.ts'

test('the documentation lists every private field that is read, with its versions', () => {
  const page = readFileSync(join(ROOT, 'docs/reference/clients.md'), 'utf8')
  const sources = globSync('src/stores/redis/*.ts', { cwd: ROOT }).map(path => readFileSync(join(ROOT, path), 'utf8'))
  const read = sources.flatMap(text => [...text.matchAll(/(?:readPrivate\(\w+, |hidden\()'(#?\w+)', '([^']+)'\)/g)])
  expect(read).toHaveLength(6)
  for (const [, field, versions] of read) expect(page).toMatch(new RegExp(`\\| \`${field}\` \\|.*\\| ${versions} \\|`))
})
