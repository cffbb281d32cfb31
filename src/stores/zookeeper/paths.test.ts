import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decode, encode, Paths } from './paths.ts'

test('every name has a unique valid step of a path', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 50 }), name => {
      const step = encode(name)
      expect(decode(step)).toBe(name)
      expect(step).toMatch(/^[A-Za-z0-9%._-]+$/)
      expect(['.', '..']).not.toContain(step)
    }),
  )
})

test.each(['%2e', '%', '%ff', 'a~b', '..'])('%o is the step of no name', step => {
  expect(decode(step)).toBeUndefined()
})

test('all paths are under the chroot and the prefix', () => {
  const paths = new Paths('/apps/billing', 'a/b')
  expect(paths.folders).toEqual(['/apps', '/apps/billing', '/apps/billing/a%2Fb'])
  expect(paths.node('x/y', 'n')).toBe('/apps/billing/a%2Fb/x%2Fy/n')
  expect(new Paths('', 'holdfast').root).toBe('/holdfast')
})
