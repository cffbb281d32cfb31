import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Keys, slotOf } from './keys.ts'

const names = fc.string({ unit: fc.constantFrom('a', '{', '}', ':', '*', '\\', '[', '🔒'), minLength: 1, maxLength: 8 })
const kinds = ['', ':state', ':line', ':lapse', ':waiter', ':broken', ':gone:0f']

test('a key contains its name, and no two names share a key', () => {
  const keys = new Keys('holdfast')
  fc.assert(
    fc.property(names, names, fc.constantFrom(...kinds), fc.constantFrom(...kinds), (a, b, of, other) => {
      expect(keys.nameOf(keys.lease(a) + of)).toBe(a)
      expect(keys.lease(a) + of === keys.lease(b) + other).toBe(a === b && of === other)
    }),
  )
})

test('the keys of a name are in one slot, whatever the prefix', () => {
  fc.assert(
    fc.property(names, names, (prefix, name) => {
      fc.pre(!/^[^{]*\{\}/.test(`${prefix}:`))
      const lease = new Keys(prefix).lease(name)
      expect(new Set(kinds.map(kind => slotOf(lease + kind))).size).toBe(1)
    }),
  )
})

test('a key of another prefix is not ours', () => {
  const keys = new Keys('holdfast')
  expect(keys.nameOf('holdfast2:{:a}')).toBeUndefined()
  expect(keys.nameOf('holdfast:{:a')).toBeUndefined()
  expect(keys.nameOf('holdfast:wake:a}')).toBeUndefined()
  expect(new Keys('hold').nameOf('holdfast:{:a}')).toBeUndefined()
})

test('a prefix whose braces would spread a name over a cluster is refused', () => {
  expect(() => new Keys('a{}b')).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  for (const prefix of ['{jobs}', 'a{b', 'a}b', '}{']) expect(() => new Keys(prefix)).not.toThrow()
})

test('slots are those of the specification of Redis Cluster', () => {
  expect(slotOf('123456789')).toBe(0x31c3)
  expect(slotOf('{user1000}.following')).toBe(slotOf('{user1000}.followers'))
  expect(slotOf('foo{}{bar}')).toBe(8_363)
  expect(slotOf('foo{{bar}}zap')).toBe(slotOf('{bar'))
})

test('patterns match exactly the keys with the prefix', () => {
  expect(new Keys('p').pattern('a*[b]?\\')).toBe('p:{:a\\*\\[b\\]\\?\\\\*')
})
