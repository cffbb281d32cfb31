import { expect, test } from 'vitest'
import { LeaseError } from './errors.ts'
import { markerOf, messageText, titleOf } from './reserved.ts'

test('a name that could imitate another, move what follows, or be a box is shown with escapes', () => {
  const odd: readonly (readonly [name: string, title: string])[] = [
    ['nightly report/7', 'nightly report/7'],
    ['备份-データ-تقرير-❤\ufe0f', '备份-データ-تقرير-❤\ufe0f'],
    ['a\u001b[2J\u0007\nb', 'a\\u{1b}[2J\\u{7}\\u{a}b'],
    ['pay\u202egnp\u2066', 'pay\\u{202e}gnp\\u{2066}'],
    ['x\u200d\u200b\ufeff\u00ady', 'x\\u{200d}\\u{200b}\\u{feff}\\u{ad}y'],
    ['half\ud800', 'half\\u{d800}'],
    ['icon\ue0b0\u{f0001}', 'icon\\u{e0b0}\\u{f0001}'],
    ['unassigned\u{ffff}\u{10fffe}', 'unassigned\\u{ffff}\\u{10fffe}'],
    ['not\u241fours', 'not\\u{241f}ours'],
    ['a\u241franb', 'a\\u{241f}ranb'],
  ]
  for (const [name, title] of odd) {
    expect(titleOf(name)).toBe(title)
    expect(titleOf(markerOf(name)), 'a marker has the name that ran').toBe(title)
  }
})

test('a message does not show the marker of a name, nor what has no shape', () => {
  const text = `the row of ${JSON.stringify(markerOf('job'))} is locked\nby a\u202eb`
  expect(messageText(text)).toBe('the row of "job" is locked\nby a\\u{202e}b')
  expect(new LeaseError('STORE_UNAVAILABLE', text).message).toBe(messageText(text))
})
