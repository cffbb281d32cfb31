import { expect, test } from 'vitest'
import { minified } from '../script/lua.ts'
import { script as redis } from '../src/stores/redis/verbs.ts'
import { script as redlock } from '../src/stores/redlock/script.ts'

test('locals get short names, the most frequent the shortest; strings, fields and keys keep theirs', () => {
  const source = `
local text, found = redis.call('GET', KEYS[1]), {}
-- A comment.
local function shown(text, ...)
  for place, word in ipairs({ text, ... }) do
    if place > 1 and text ~= 'a  text' then found[#found + 1] = word .. 1 .. ' - ' end
  end
  return { text = text, found.text, ['word'] = found }
end
return shown(text)
`
  expect(minified(source)).toBe(
    [
      "local a,b=redis.call('GET',KEYS[1]),{}",
      'local function c(a,...)',
      'for d,e in ipairs({a,...})do',
      "if d>1 and a~='a  text'then b[#b+1]=e..1 ..' - 'end",
      'end',
      "return{text=a,b.text,['word']=b}",
      'end',
      'return c(a)',
    ].join('\n'),
  )
})

test('a script with strings that it would not recognize is refused', () => {
  for (const source of ['return "a"', 'return [[a]]', "return 'a"])
    expect(() => minified(source)).toThrow('single quotes')
})

test.each([
  ['redis', redis],
  ['redlock', redlock],
])('the script of %s keeps its strings and the names that it does not declare', (_, { source }) => {
  const strings = (text: string): string[] => text.replace(/--.*$/gm, '').match(/'[^'\n]*'/g) ?? []
  const short = minified(source)
  expect(strings(short)).toEqual(strings(source))
  expect(short.length).toBeLessThan(0.6 * source.length)
  for (const name of ['KEYS[', 'ARGV[', 'redis.call', 'pcall(', 'tonumber(', 'ipairs(', 'math.max('])
    expect(short.split(name)).toHaveLength(source.replace(/--.*$/gm, '').split(name).length)
})
