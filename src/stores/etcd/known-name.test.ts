import { expect, test } from 'vitest'
import { Keys } from './keys.ts'
import { KnownName } from './known-name.ts'
import type { KeyValue } from './messages.ts'

test('a name that is read again counts as freed just now, unless nothing was written meanwhile', () => {
  let now = 0
  const keys = new Keys('prefix')
  const known = new KnownName(keys, { now: () => now, wall: () => now, after: () => () => {} })
  const waiter = (mod_revision: string): KeyValue => {
    return { key: keys.position('name', 'id'), value: '', create_revision: '5', mod_revision }
  }
  const changedAt = (time: number, read: KeyValue): number => {
    now = time
    known.load([read], 10n)
    return known.changed
  }
  expect(changedAt(1_000, waiter('5'))).toBe(1_000)
  expect(changedAt(2_000, waiter('5'))).toBe(1_000)
  expect(changedAt(3_000, waiter('7'))).toBe(3_000) // it was passed by a claim that has ended since, and asked again
})
