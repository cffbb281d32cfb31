import { assert, nat, property, uniqueArray } from 'fast-check'
import { expect, test } from 'vitest'
import { difference } from './difference.ts'

interface Entry {
  readonly id: string
  readonly version: number
}

const entry = (number: number): Entry => ({ id: `${number % 8}`, version: Math.floor(number / 8) })
const lists = uniqueArray(nat(31), { selector: number => number % 8 })

test('what is deleted, replaced and appended makes the new list of the old one, in its order', () => {
  assert(
    property(lists, lists, (one, other) => {
      const before = one.map(entry)
      const after = other.map(number => before.find(({ id, version }) => number === 8 * version + +id) ?? entry(number))
      const { ended, added, changed } = difference(before, after)
      const left = before.filter(each => !ended.includes(each))
      const replaced = left.map(each => changed.find(({ id }) => id === each.id) ?? each)
      expect([...replaced, ...added]).toEqual(after)
      for (const each of changed) expect(before).not.toContain(each)
    }),
  )
})

test('an entry that moved to the end is deleted and appended, and the others stay', () => {
  const [a, b, c] = [0, 1, 2].map(entry) as [Entry, Entry, Entry]
  expect(difference([a, b, c], [b, c, a])).toEqual({ ended: [a], added: [a], changed: [] })
})
