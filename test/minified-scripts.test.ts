import { expect, test } from 'vitest'
import { minified } from '../script/lua.ts'
import { script as redis } from '../src/stores/redis/verbs.ts'
import { script as redlock } from '../src/stores/redlock/script.ts'

test('comments, indentation and spaces around signs go; strings stay', () => {
  const source = `
local text = redis.call('GET', KEYS[1]) -- A comment, 'quoted'.

  -- Another.
  if #text > 1 and text ~= 'a --  = text' then return { text = text .. 1 .. ' - ', 1 - -2 } end
return text
`
  expect(minified(source)).toBe(
    [
      "local text=redis.call('GET',KEYS[1])",
      "if#text>1 and text ~='a --  = text' then return{text=text .. 1 .. ' - ',1 - -2}end",
      'return text',
    ].join('\n'),
  )
})

test('a script with strings that it would not recognize is refused', () => {
  for (const source of ['return "a"', 'return [[a]]']) expect(() => minified(source)).toThrow('single quotes')
})

test.each([
  ['redis', redis],
  ['redlock', redlock],
])('the script of %s keeps its strings and names', (_, { source }) => {
  const words = (text: string): string[] => text.replace(/--.*$/gm, '').match(/'[^'\n]*'|\w+/g) ?? []
  const short = minified(source)
  expect(words(short)).toEqual(words(source))
  expect(short.length).toBeLessThan(0.9 * source.length)
})
