import { expect, test } from 'vitest'
import { isShared, recordToJSON, slotsText, stateOf, useOf, visible } from './record.ts'
import type { LeaseRecord, NodeRecord } from './store.ts'

const holder: LeaseRecord = { name: 'a', state: 'held', owner: 'o', note: 'n', token: 2n ** 63n, remaining: 12.6 }
const waiter: LeaseRecord = { name: 'a', state: 'waiting', owner: 'w', note: '', remaining: 3, position: 0 }

test('shown milliseconds are whole and not negative', () => {
  expect(visible(holder).remaining).toBe(13)
  expect(visible({ ...holder, remaining: -0.4 }).remaining).toBe(0)
  expect(visible({ ...holder, remaining: -70 }).remaining).toBe(0)
})

test('a record is written as JSON with its token as decimal digits, and is otherwise a plain object', () => {
  const seen = visible(holder)
  expect(Object.keys(seen)).toEqual(Object.keys(holder))
  expect(JSON.parse(JSON.stringify([seen]))).toEqual([{ ...holder, token: '9223372036854775808', remaining: 13 }])
  expect(recordToJSON(waiter)).toEqual({ ...waiter, token: undefined })
})

test('the state of a name is its holders and its waiters in order', () => {
  const second = { ...waiter, position: 1 }
  expect(stateOf('a', [holder, waiter, second])).toEqual({ name: 'a', holders: [holder], waiters: [waiter, second] })
  expect(stateOf('a', [waiter])).toEqual({ name: 'a', holders: [], waiters: [waiter] })
  expect(stateOf('a', [])).toEqual({ name: 'a', holders: [], waiters: [] })
})

test('the servers of a store are no leases, whatever their names', () => {
  const node: NodeRecord = { name: 'a', state: 'quarantined', remaining: 3, reason: 'restarted' }
  expect(stateOf('a', [node, holder, waiter])).toEqual({
    name: 'a',
    holders: [holder],
    waiters: [waiter],
    nodes: [node],
  })
})

test('how much of a shared name is held: by its slots, and by the smallest limit', () => {
  expect(
    useOf([
      { limit: 5, slots: [0, 1, 3] },
      { limit: 9, slots: [2] },
    ]),
  ).toBe('4 of 5')
  expect(useOf([{ limit: 2 ** 31 - 1, slots: [0] }])).toBe('1 reader')
  expect(
    useOf([
      { limit: 2 ** 31 - 1, slots: [0] },
      { limit: 2 ** 31 - 1, slots: [1] },
    ]),
  ).toBe('2 readers')
  expect([isShared([holder]), isShared([{ limit: 5 }]), isShared([])]).toEqual([false, true, false])
  expect([slotsText(), slotsText([3]), slotsText([0, 1, 2, 5, 7, 8])]).toEqual([
    'slot 0',
    'slot 3',
    'slots 0-2, 5, 7-8',
  ])
})

test('M8: longer texts of other programs are clipped to 255 bytes, between two characters', () => {
  const seen = visible({ ...holder, owner: 'é'.repeat(1_000_000), note: 'x'.repeat(256) })
  expect(seen.owner).toBe(`${'é'.repeat(126)}…`)
  expect(seen.note).toBe(`${'x'.repeat(252)}…`)
  const longest = { ...holder, owner: 'é'.repeat(127), note: 'x'.repeat(255) }
  expect(visible(longest)).toMatchObject({ owner: longest.owner, note: longest.note })
})

test('an owner and a note of another program control no terminal', () => {
  const seen = visible({ ...holder, owner: 'a\u001b[2Jb', note: 'x\u202ey\nz' })
  expect([seen.owner, seen.note]).toEqual(['a\\u{1b}[2Jb', 'x\\u{202e}y\\u{a}z'])
})
