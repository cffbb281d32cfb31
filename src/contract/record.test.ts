import { expect, test } from 'vitest'
import { recordToJSON, stateOf, visible } from './record.ts'
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

test('the state of a name is its holder and its waiters in order', () => {
  const second = { ...waiter, position: 1 }
  expect(stateOf('a', [holder, waiter, second])).toEqual({ name: 'a', holder, waiters: [waiter, second] })
  expect(stateOf('a', [waiter])).toEqual({ name: 'a', holder: undefined, waiters: [waiter] })
  expect(stateOf('a', [])).toEqual({ name: 'a', holder: undefined, waiters: [] })
})

test('the servers of a store are no leases, whatever their names', () => {
  const node: NodeRecord = { name: 'a', state: 'quarantined', remaining: 3, reason: 'restarted' }
  expect(stateOf('a', [node, holder, waiter])).toEqual({ name: 'a', holder, waiters: [waiter], nodes: [node] })
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
