import { expect, test } from 'vitest'
import { type Span, union, without } from './span.ts'

test('spans are joined if they overlap, and across short gaps', () => {
  expect(union([span(5, 9), span(0, 2), span(1, 3), span(4, 4)])).toEqual([span(0, 3), span(5, 9)])
  expect(union([span(5, 9), span(0, 3)], 2)).toEqual([span(0, 9)])
})

test('subtraction leaves the parts outside of all other spans', () => {
  const others = [span(1, 2), span(3, 3), span(8, 12), span(11, 14), span(20, 21)]
  expect(without([span(0, 10), span(13, 16)], others)).toEqual([span(0, 1), span(2, 8), span(14, 16)])
  expect(without([span(2, 4)], [span(0, 9)])).toEqual([])
  expect(without([span(2, 4)], [])).toEqual([span(2, 4)])
})

function span(from: number, to: number): Span {
  return { from, to }
}
