import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatDuration, parseDuration } from './duration.ts'

const FACTORS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const

describe('a duration of the command line', () => {
  test.each([
    ['500ms', 500],
    ['10s', 10_000],
    ['1.5s', 1_500],
    ['.5s', 500],
    ['1.1s', 1_100],
    ['0.29s', 290],
    ['5m', 300_000],
    ['1h', 3_600_000],
    ['0s', 0],
    ['596h', 2_145_600_000],
  ])('%s is %d ms', (text, ms) => {
    expect(parseDuration(text, '--ttl')).toBe(ms)
  })

  test('any whole number of any unit is parsed exactly', () => {
    fc.assert(
      fc.property(fc.nat(596), fc.constantFrom('ms', 's', 'm', 'h'), (number, unit) => {
        expect(parseDuration(`${number}${unit}`, '--ttl')).toBe(number * FACTORS[unit])
      }),
    )
  })

  test('more than the longest delay of a timer is refused as too long', () => {
    fc.assert(
      fc.property(fc.integer({ min: 597 }), hours => {
        expect(() => parseDuration(`${hours}h`, '--ttl')).toThrow('too long')
      }),
    )
  })

  test('decimal fractions that are whole milliseconds are parsed exactly', () => {
    fc.assert(
      fc.property(fc.nat({ max: 2_000_000_000 }), ms => {
        expect(parseDuration(`${Math.floor(ms / 1_000)}.${String(ms % 1_000).padStart(3, '0')}s`, '--ttl')).toBe(ms)
      }),
    )
  })

  test('any other text is refused with the exit code for wrong usage', () => {
    fc.assert(
      fc.property(fc.string(), text => {
        fc.pre(!/^(\d+(\.\d+)?|\.\d+)(ms|s|m|h)$/.test(text))
        expect(() => parseDuration(text, '--ttl')).toThrow(expect.objectContaining({ exit: 64 }))
      }),
    )
  })

  test('a number without a unit is refused with a suggestion', () => {
    expect(() => parseDuration('10', '--ttl')).toThrow('--ttl 10: a duration needs a unit: did you mean 10s or 10ms?')
  })

  test.each(['', ' ', '-5s', '5 s', '1e3s', '10S', '1d', 's', '1h30m', 'NaN', 'Infinity', '٣s'])(
    '%j is refused',
    text => {
      expect(() => parseDuration(text, '--wait')).toThrow('is not a duration: expected a number and ms, s, m or h')
    },
  )

  test('a fraction of a millisecond is refused', () => {
    expect(() => parseDuration('1.5ms', '--ttl')).toThrow('fraction of a millisecond')
    expect(() => parseDuration('0.0001s', '--ttl')).toThrow('fraction of a millisecond')
  })
})

describe('a duration for people', () => {
  test.each([
    [-5, '0 ms'],
    [0.4, '0 ms'],
    [850, '850 ms'],
    [999.4, '999 ms'],
    [999.6, '1 s'],
    [2_900, '2.9 s'],
    [10_000, '10 s'],
    [59_949, '59.9 s'],
    [59_990, '1 min'],
    [245_000, '4 min 5 s'],
    [3_599_900, '1 h'],
    [12_000_000, '3 h 20 min'],
  ])('%d ms is %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
  })
})
