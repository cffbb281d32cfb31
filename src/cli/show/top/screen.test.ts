import { expect, test } from 'vitest'
import { Sight } from '../../../dashboard/sight.ts'
import type { Look } from '../../../dashboard/survey.ts'
import { endOf, filled, type Line, widthOf, wrapped, wrappedWords } from '../text.ts'
import { frame } from './frame.ts'
import { nameLines } from './name.ts'
import { Screen } from './screen.ts'
import { State } from './state.ts'

const lines: Line[] = [[['nightly', 'bold'], [' 9.9 s']], [['free', 'dim']]]

test('only cells that differ are written, as one synchronized update', () => {
  const screen = new Screen(true)
  expect(screen.draw(lines, 20, 2)).toBe(
    '\x1b[?2026h\x1b[0m\x1b[2J\x1b[1;1H\x1b[0;1mnightly\x1b[1;9H\x1b[0m9.9\x1b[1;13Hs\x1b[2;1H\x1b[0;2mfree\x1b[0m\x1b[?2026l',
  )
  expect(screen.draw(lines, 20, 2), 'nothing changed').toBe('')
  const [first = []] = lines
  expect(screen.draw([[...first.slice(0, 1), [' 9.8 s']]], 20, 2)).toBe(
    '\x1b[?2026h\x1b[1;11H\x1b[0m8\x1b[2;1H\x1b[0m    \x1b[0m\x1b[?2026l',
  )
  screen.forget()
  expect(screen.draw(lines, 20, 2)).toContain('nightly')
})

test('another size is written as a whole, and what does not fit is cut', () => {
  const screen = new Screen(true)
  screen.draw(lines, 20, 2)
  expect(screen.draw(lines, 4, 1)).toBe('\x1b[?2026h\x1b[0m\x1b[2J\x1b[1;1H\x1b[0;1mnigh\x1b[0m\x1b[?2026l')
})

test('a wide character takes two columns, also where it replaces or is replaced', () => {
  expect(['a', '批', '🔒', 'é', '👩‍🔧'].map(widthOf)).toEqual([1, 2, 2, 1, 2])
  const screen = new Screen(true)
  screen.draw([[['ab']]], 4, 1)
  expect(screen.draw([[['批b']]], 4, 1)).toBe('\x1b[?2026h\x1b[1;1H\x1b[0m批b\x1b[0m\x1b[?2026l')
  expect(screen.draw([[['abc']]], 4, 1)).toBe('\x1b[?2026h\x1b[1;1H\x1b[0mabc\x1b[0m\x1b[?2026l')
})

test('where terminals differ about columns, a line is written anew and each part is put in its place', () => {
  expect(['ｱ', '￥', '㊗', '\u0301', 'क्षि', 'e\u0301'].map(widthOf)).toEqual([1, 2, 2, 1, 2, 1])
  expect(['ー', '゛', '、', '︰', 'ｰ'].map(widthOf), 'of several scripts').toEqual([2, 2, 2, 2, 1])
  const screen = new Screen(true)
  expect(screen.draw([[['क्षि b']]], 6, 1)).toMatch(/क्षि\S*\[1;4Hb/)
  expect(screen.draw([[['🔒b']]], 6, 1)).toMatch(/🔒\S*\[1;3Hb/)
  expect(screen.draw([[['abcdef']]], 6, 1)).toBe(
    '\x1b[?2026h\x1b[1;1H\x1b[0m\x1b[2K\x1b[1;1H\x1b[0mabcdef\x1b[0m\x1b[?2026l',
  )
})

test('without colours a style is bold, dim or inverse only', () => {
  const styles: Line = [
    ['a', 'bold'],
    ['b', 'dim'],
    ['c', 'warn'],
    ['d', 'bad'],
    ['e', 'chosen'],
  ].map(([text, style]) => [text, style] as Line[number])
  expect(new Screen(false).draw([styles], 5, 1)).not.toMatch(/;3\d/)
  expect(new Screen(true).draw([styles], 5, 1)).toMatch(/;31m/)
})

test('a text is filled or cut to its columns', () => {
  expect([filled('ab', 4), filled('abcd', 4), filled('abcde', 4), filled('批批批', 4), filled('ab', 0)]).toEqual([
    ...['ab  ', 'abcd', 'abc…', '批… ', ''],
  ])
})

test('a text is wrapped, or its end is shown', () => {
  expect([wrappedWords('ab cd efgh', 5), wrappedWords('abcdef gh', 3), wrappedWords('', 3)]).toEqual([
    ['ab cd', 'efgh'],
    ['abc', 'def', 'gh'],
    [''],
  ])
  expect([wrapped('abcde', 2), wrapped('', 2), wrapped('批b批', 2)]).toEqual([
    ['ab', 'cd', 'e'],
    [''],
    ['批', 'b', '批'],
  ])
  expect([endOf('abcd', 4), endOf('abcde', 4), endOf('批批批', 4), endOf('ab', 0)]).toEqual([
    'abcd',
    '…cde',
    '…批',
    '…',
  ])
})

test('a name that a partial look did not read is unknown, not free', () => {
  const opened = (isPartial: boolean): unknown => {
    const state = new State()
    state.see({ sights: new Map(), changes: [], signs: new Map(), isPartial } as unknown as Look)
    state.opened = 'nightly'
    return nameLines(state, { columns: 80, nodes: [] }, 20)[1]
  }
  expect(opened(false)).toEqual([['It is free, and nobody waits.']])
  expect(opened(true)).toEqual([['It is not known whether it is held: only some names are read.']])
})

test('a process that does not renew five names is one sign, and its names are first; what is old is dim', () => {
  const names = ['a', 'queue/b', 'queue/c', 'queue/d', 'queue/e', 'queue/f']
  const sights = new Map(names.map(name => [name, new Sight(name)]))
  for (const [index, sight] of [...sights.values()].entries())
    sight.see(
      [{ name: sight.name, state: 'held', owner: index > 0 ? 'worker-a' : 'b', token: 1n, note: '', remaining: 4_000 }],
      0,
      0,
    )
  const signs = new Map(
    [...sights.values()]
      .slice(1)
      .map(({ name, holds: [hold] }) => [
        name,
        [{ kind: 'not renewed', text: 'Not renewed for 8.0 s', hold: { ...(hold as object), most: 12_000 } }],
      ]),
  )
  const shown = (failure?: Error, count = 5, rows = 24): Line[] => {
    const state = new State()
    const seen = { at: 0, since: 0, pause: 500, sights, changes: [], takeovers: 0, failure }
    state.see({ ...seen, signs: new Map([...signs].slice(0, count)) } as unknown as Look)
    return frame(state, { columns: 80, rows, now: 0, store: 'redis://cache', prefix: '', nodes: [] })
  }
  const textOf = (line: Line = []): string =>
    line
      .map(([text]) => text)
      .join('')
      .trimEnd()
  const lines = shown().map(textOf)
  expect(lines.slice(1, 3)).toEqual(['worker-a has not renewed 5 names for 8.0 s', 'The first ends in 4.0 s'])
  expect(lines.slice(6, 12).map(line => line.slice(0, 10).trimEnd())).toEqual([
    ...['>! queue/b', ' ! queue/c', ' ! queue/d', ' ! queue/e', ' ! queue/f', '   a'],
  ])
  expect(lines.at(-2), 'the sign of the chosen row').toBe('Not renewed for 8.0 s')
  for (const rows of [24, 7]) {
    const screen = shown(undefined, 1, rows).map(textOf).join('\n')
    expect(screen.match(/Not renewed/g), 'the third line is not said again').toHaveLength(1)
  }
  const old = shown(
    new Error('Redis cannot be reached: connect ECONNREFUSED 127.0.0.1:6379: check its address, and that it runs'),
  )
  expect(old.map(textOf).join('\n')).toMatch(
    /\nThe store cannot be read\nRedis .*\n.* that it runs\nHeld and waiting: unknown/,
  )
  expect(old.find(line => textOf(line).includes('queue/c'))?.map(([, style]) => style)).toEqual(['dim'])
})
