import { expect, test } from 'vitest'
import { turnAfter } from './queue.ts'

test('the first ten waiters have full grace periods, and those behind short ones', () => {
  expect([0, 1, 9, 10, 11, 100].map(turnAfter)).toEqual([0, 100, 900, 1_000, 1_002, 1_180])
})
