import { expect, test } from 'vitest'
import { table } from './table.ts'

test('wide characters keep the columns in line', () => {
  expect(
    table(
      ['NAME', 'OWNER'],
      [
        ['备份', 'alice'],
        ['e\u0301', 'bob'],
      ],
    )
      .split('\n')
      .slice(1),
  ).toEqual(['备份  alice', 'e\u0301     bob'])
})

test('a table may have any number of rows', () => {
  const rows = Array.from({ length: 200_000 }, (_, index) => [`${index}`])
  expect(table(['NAME'], rows).split('\n')).toHaveLength(200_001)
})
