import fc from 'fast-check'
import { expect, test } from 'vitest'
import { checkDuration, checkHeartbeat, checkKeys, checkName, checkSignal, checkText, checkWait } from './check.ts'
import { LeaseError } from './errors.ts'
import { SEPARATOR } from './reserved.ts'
import { LONGEST_DELAY } from './timers.ts'

/** Does the check pass? It must throw nothing but INVALID_ARGUMENT, without control characters in its text. */
function passes(check: () => void): boolean {
  try {
    check()
    return true
  } catch (error) {
    if (!LeaseError.is(error)) throw error
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', retryable: false })
    expect(error.message).not.toMatch(/\p{Cc}/u)
    return false
  }
}

const texts = fc.oneof(fc.string({ unit: 'binary', maxLength: 300 }), fc.string({ unit: 'grapheme', maxLength: 300 }))
const invisible = /[\u2028\u2029]|(?!\u200c|\u200d|\p{Variation_Selector})\p{Default_Ignorable_Code_Point}/u
const anything = fc.oneof(
  fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true }),
  fc.constantFrom<unknown>(Symbol('s'), () => {}, class {}, -0, Number.MIN_VALUE, Number.MAX_SAFE_INTEGER),
)

test('a name is valid exactly if it is 1 to 255 bytes of UTF-8 without control, invisible and reserved characters', () => {
  fc.assert(
    fc.property(texts, text => {
      const bytes = new TextEncoder().encode(text)
      const isUnicode = new TextDecoder().decode(bytes) === text.replace(/^\ufeff/, '')
      const codes = Array.from(text, character => character.charCodeAt(0))
      const control = codes.some(code => code < 0x20 || (code >= 0x7f && code < 0xa0))
      const valid = bytes.length <= 255 && isUnicode && !control && !invisible.test(text)
      expect(passes(() => checkText(text, 'note'))).toBe(valid)
      expect(passes(() => checkName(text))).toBe(valid && text !== '' && !text.includes(SEPARATOR))
    }),
    {
      examples: [
        ['x'.repeat(255)],
        ['x'.repeat(256)],
        ['é'.repeat(127)],
        [`${'é'.repeat(127)}xx`],
        ['\ud800'],
        ['a\u241f'],
        [''],
      ],
    },
  )
})

test.each([
  '\u202e',
  '\u2066',
  '\u200f',
  '\u061c',
  '\u2028',
  '\u2029',
  '\u200b',
  '\u2060',
  '\ufeff',
  '\u00ad',
  '\u{e0041}',
])('M7: %j could make a name look like another, and is refused', character => {
  const shown = `\\u{${character.codePointAt(0)?.toString(16)}}`
  expect(() => checkName(`pay${character}roll`)).toThrow(
    `the name of a lease has an invisible character ("pay${shown}roll"): remove it`,
  )
  expect(passes(() => checkText(character, 'note'))).toBe(false)
})

test('M7: names of every language, and emoji with their joiners, are accepted', () => {
  for (const name of [
    'übung',
    'می\u200cخواهم',
    'क्\u200dष',
    '中文',
    'עברית',
    '👩\u200d👩\u200d👧',
    '❤\ufe0f',
    '葛\u{e0100}',
  ])
    checkName(name)
})

test('a duration is valid exactly if it is a whole number from 10 to 2^31 - 1', () => {
  const numbers = fc.oneof(fc.double(), fc.integer(), fc.integer({ min: LONGEST_DELAY - 2, max: LONGEST_DELAY + 2 }))
  fc.assert(
    fc.property(numbers, value => {
      const valid = value >= 10 && value <= 2_147_483_647 && Math.trunc(value) === value
      expect(passes(() => checkDuration(value, 'ttl'))).toBe(valid)
    }),
    { examples: [[9], [10], [10.5], [LONGEST_DELAY], [LONGEST_DELAY + 1], [Number.NaN], [-0]] },
  )
})

test('a wait is valid exactly if it is a number from 0 to Infinity', () => {
  fc.assert(
    fc.property(fc.double(), value => {
      expect(passes(() => checkWait(value, 'wait'))).toBe(value >= 0)
    }),
    { examples: [[0], [-0], [Number.POSITIVE_INFINITY], [Number.NaN], [-Number.MIN_VALUE]] },
  )
})

test('for any argument, a check passes or throws INVALID_ARGUMENT', () => {
  fc.assert(
    fc.property(anything, value => {
      if (passes(() => checkName(value))) expect(typeof value).toBe('string')
      if (passes(() => checkDuration(value, 'ttl'))) expect(Number.isInteger(value)).toBe(true)
      if (passes(() => checkWait(value, 'wait'))) expect(value).toBeTypeOf('number')
      if (passes(() => checkHeartbeat(value, false))) expect(value).toBeTypeOf('boolean')
      if (passes(() => checkSignal(value))) expect(value).toBeUndefined()
      if (passes(() => checkKeys(value, new Set(['ttl']), 'acquire'))) expect(value).toBeTypeOf('object')
    }),
  )
})

test('a signal of another realm or of a polyfill is accepted', () => {
  const polyfill = { aborted: false, reason: undefined, addEventListener() {}, removeEventListener() {} }
  for (const signal of [undefined, AbortSignal.timeout(1), polyfill]) checkSignal(signal)
  for (const other of [null, {}, new AbortController(), { aborted: true }, 'x', new EventTarget()])
    expect(passes(() => checkSignal(other))).toBe(false)
})

test('an inherited option counts, and an unknown one is refused', () => {
  const known = new Set(['ttl'])
  expect(passes(() => checkKeys(Object.create({ ttl: 5 }), known, 'acquire'))).toBe(true)
  expect(passes(() => checkKeys(Object.create({ tll: 5 }), known, 'acquire'))).toBe(false)
  expect(passes(() => checkKeys({ tll: undefined }, known, 'acquire'))).toBe(false)
  expect(passes(() => checkKeys(Object.create(null), known, 'acquire'))).toBe(true)
})
