import fc from 'fast-check'
import { expect, test } from 'vitest'
import { List } from './list.ts'

test('keeps entries in order until they are removed', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20), { maxLength: 100 }), steps => {
      const list = new List<number>()
      const entries = steps.map((_, index) => ({ entry: list.add(index), isIn: true }))
      for (const step of steps) {
        const each = entries[step]
        if (!each) continue
        expect(list.remove(each.entry)).toBe(each.isIn)
        each.isIn = false
        const left = entries.filter(({ isIn }) => isIn).map(({ entry }) => entry.value)
        expect(list.values()).toEqual(left)
        expect(list.size).toBe(left.length)
        expect(list.first?.value).toBe(left[0])
      }
    }),
  )
})

test('a removed entry references no other entry, so that keeping it leaks nothing', () => {
  const list = new List<string>()
  const [, middle] = [list.add('a'), list.add('b'), list.add('c')]
  list.remove(middle)
  expect(middle).toEqual({ value: 'b' })
})

test('an entry of another list is not removed', () => {
  const [one, other] = [new List<string>(), new List<string>()]
  const entry = one.add('a')
  expect(other.remove(entry)).toBe(false)
  expect(one.remove(entry)).toBe(true)
})
