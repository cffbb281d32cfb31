import { expect, test } from 'vitest'
import { type Column, table } from './table.ts'
import { shortened, widthOf } from './text.ts'

const NAME: Column = { title: 'NAME', rank: 0, least: 8, share: 0.4 }
const OWNER: Column = { title: 'OWNER', rank: 1, least: 8 }
const TOKEN: Column = { title: 'TOKEN', rank: 2, isNumber: true, from: 160 }
const NOTE: Column = { title: 'NOTE', rank: 3, least: 8, cut: 'end' }

test('wide characters keep the columns in line', () => {
  expect(
    table(
      [NAME, OWNER],
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
  expect(table([NAME], rows).split('\n')).toHaveLength(200_001)
})

const LONG = [
  ...Array.from({ length: 20 }, (_, index) => [
    `job-${index}`,
    `worker-7f9c4d8b6b-x2${index}b`,
    `${index * 10 ** 14}`,
    '',
  ]),
  [
    `tenant/42/${'import-'.repeat(12)}end`,
    `ip-10-0-12-41.${'internal.'.repeat(9)}net:48213`,
    '17',
    `step ${'on '.repeat(80)}`,
  ],
  ['レポート'.repeat(9), '作業者'.repeat(9), '18', 'メモ'.repeat(60)],
]

test.each([20, 40, 80, 120, 159, 160, 180, 400])(
  'no line is wider than a terminal of %i columns, nor a name than 40 %',
  width => {
    const [titles = '', ...lines] = table([NAME, OWNER, TOKEN, NOTE], LONG, width).split('\n')
    for (const line of [titles, ...lines]) expect(widthOf(line)).toBeLessThanOrEqual(width)
    expect(titles.includes('TOKEN')).toBe(width >= 160)
    if (width >= 80) {
      expect(titles.indexOf('OWNER')).toBeLessThanOrEqual(0.4 * width + 2)
      expect(lines[0], 'a usual text is whole though another is long').toMatch(/^job-0 +worker-7f9c4d8b6b-x20b/)
    }
  },
)

test('without a terminal nothing is cut; numbers are on the right, and an empty column takes no space', () => {
  const [titles, ...lines] = table([NAME, OWNER, TOKEN, NOTE], LONG).split('\n')
  for (const [index, cells] of LONG.entries()) for (const cell of cells) expect(lines[index]).toContain(cell.trimEnd())
  expect(titles).toContain('TOKEN')
  const rows = [
    ['a', '', '9'],
    ['b', '', '10'],
  ]
  expect(table([NAME, OWNER, TOKEN], rows).split('\n')).toEqual(['NAME  TOKEN', 'a         9', 'b        10'])
})

test('a text is shortened in the middle, so that both of its ends can be read', () => {
  expect(shortened('worker-7f9c4d8b6b-x2x1b', 12)).toBe('worke…-x2x1b')
  expect(shortened('worker', 6)).toBe('worker')
  for (const text of ['abcdefgh', '作業者の名前', 'a\u0301bcdef', '🔒🔒🔒🔒'])
    for (const width of [1, 2, 3, 4, 5]) expect(widthOf(shortened(text, width))).toBeLessThanOrEqual(width)
})
