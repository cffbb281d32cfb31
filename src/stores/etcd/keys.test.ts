import { expect, test } from 'vitest'
import { after, Keys, leaseOf, secondsOf } from './keys.ts'

const keys = new Keys('holdfast')
const text = (key: string): string => Buffer.from(key, 'base64').toString()
const isIn = ({ key, range_end }: { key: string; range_end: string }, one: string): boolean => {
  const bytes = Buffer.from(one, 'base64')
  return (
    Buffer.compare(bytes, Buffer.from(key, 'base64')) >= 0 &&
    Buffer.compare(bytes, Buffer.from(range_end, 'base64')) < 0
  )
}

test('the keys of a name are in its ranges, and no others', () => {
  const [held, position] = [keys.held('a', '1'), keys.position('a', '1')]
  expect([held, position].map(text)).toEqual(['holdfast\ta\theld\t1', 'holdfast\ta\tqueue\t1'])
  expect([held, position].map(key => isIn(keys.all('a'), key))).toEqual([true, true])
  expect([held, position].map(key => isIn(keys.queue('a'), key))).toEqual([false, true])
  expect([held, position].map(key => isIn(keys.holders('a'), key))).toEqual([true, false])
  for (const other of ['a/b', 'a ', 'ab', 'b', 'a held', 'a\u0080', '\u{10ffff}'])
    for (const key of [keys.held(other, '1'), keys.position(other, '1'), keys.gone('a')])
      expect(isIn(keys.all('a'), key)).toBe(false)
})

test('a prefix of names finds all of them, and not their tombstones', () => {
  for (const name of [' ', 'a', 'a/b', '\u{10ffff}']) expect(isIn(keys.names(''), keys.held(name, '1'))).toBe(true)
  expect(isIn(keys.names(''), keys.gone('1'))).toBe(false)
  expect(isIn(keys.names('a/'), keys.held('a/b', '1'))).toBe(true)
  expect(isIn(keys.names('a/'), keys.held('a', '1'))).toBe(false)
  expect(isIn(keys.names('\u{10ffff}'), keys.held('\u{10ffff}x', '1'))).toBe(true)
})

test('keys of different prefixes differ', () => {
  const other = new Keys('holdfast/a')
  expect(isIn(keys.names(''), other.held('b', '1'))).toBe(false)
  expect(other.held('b', '1')).not.toBe(keys.held('a/b', '1'))
})

test('a key is parsed to its name and id', () => {
  expect(keys.parse(keys.held('a/b c', '1'))).toEqual({ name: 'a/b c', isHeld: true, id: '1' })
  expect(keys.parse(keys.position('ü', '1'))).toEqual({ name: 'ü', isHeld: false, id: '1' })
  expect(text(after(keys.held('a', '1')))).toBe('holdfast\ta\theld\t1\0')
})

test('the lease of a claim is the same for the same ttl in seconds, positive, and within 63 bits', () => {
  expect(leaseOf('a', 10)).toBe(leaseOf('a', 10))
  expect(new Set([leaseOf('a', 10), leaseOf('a', 11), leaseOf('a', 10, '1'), leaseOf('a', 10, '2')]).size).toBe(4)
  const all = Array.from({ length: 1_000 }, (_, index) => BigInt(leaseOf(`id ${index}`, index % 7)))
  expect(new Set(all).size).toBe(1_000)
  expect(all.every(lease => lease > 0n && lease < 2n ** 63n)).toBe(true)
})

test('a ttl is rounded up to seconds', () => {
  expect([10, 1_000, 1_001, 2_147_483_647].map(secondsOf)).toEqual([1, 1, 2, 2_147_484])
})
