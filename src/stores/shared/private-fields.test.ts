import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import * as all from './private-fields.ts'

test('the documentation lists every private field that is read, with its versions', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/reference/clients.md'), 'utf8')
  const documented = page.split('\n').filter(line => /^\| .*`/.test(line))
  const read = Object.values(all).filter(row => typeof row === 'object')
  expect(documented.toSorted()).toEqual(
    read
      .map(({ client, field, holds, versions }) => `| ${client} | \`${field}\` | ${holds} | ${versions} |`)
      .toSorted(),
  )
})
