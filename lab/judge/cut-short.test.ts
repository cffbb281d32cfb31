import { expect, test } from 'vitest'
import type { Event } from './history.ts'
import { broken, brokenOf, event, granted, ONE, TWO } from './test/made-up.ts'

/** Client 1 is granted the name, and its last check shows that the lease ends at 95. */
const HOLDS = [event('asked', 0, ONE), granted(5, ONE, '5'), event('believed', 6, { ...ONE, until: 95 })] as const
const DIES = event('died', 20, { client: 1, pid: 1 })
const LOSES = event('lost', 50, { ...ONE, reason: 'LEASE_LOST' })

const next = (at: number): Event[] => [
  event('asked', 1, TWO),
  granted(at, TWO, '6'),
  event('believed', at, { ...TWO, until: at + 90 }),
  event('releasing', at + 1, TWO),
]

test('the lease of a dead holder lasts until its end, although nobody is harmed before', () => {
  expect(broken('notified', ...HOLDS, DIES, ...next(94))).toEqual([])
  expect(broken('notified', ...HOLDS, DIES, ...next(60))).toEqual([
    'the lease of client 1 was not released, and client 2 was granted it 35.0 ms before its end',
  ])
})

test('a store that says too early that a lease is gone is wrong, although it was notified in time', () => {
  expect(broken('notified', ...HOLDS, LOSES, ...next(60))).toEqual([
    'the lease of client 1 was not released, and it was lost 45.0 ms before its end',
  ])
  expect(broken('notified', ...HOLDS, { ...LOSES, at: 94 }, ...next(96))).toEqual([])
})

test('a lease that was released, or renewed after a renewal that seemed to be lost, was not cut short', () => {
  expect(broken('notified', ...HOLDS, event('releasing', 19, ONE), DIES, ...next(30))).toEqual([])
  const renewed = event('believed', 60, { ...ONE, until: 150 })
  expect(broken('notified', ...HOLDS, renewed, { ...DIES, at: 70 }, ...next(140))).toHaveLength(1)
})

test('a clock jump excuses it, and so does a store whose leases end with the connection of the holder', () => {
  const jump = event('fault', 10, { what: 'server-clock', target: 'the server', changesClock: true })
  expect(broken('notified', ...HOLDS, DIES, jump, ...next(30))).toEqual([])
  expect(broken('notified', ...HOLDS, DIES, ...next(30))).toHaveLength(1)
  expect(brokenOf({ endsWithConnection: true }, 'notified', ...HOLDS, DIES, ...next(30))).toEqual([])
})

test('a holder whose own clock jumped may end its lease early, but nobody else may', () => {
  const jump = (client: number): Event => event('fault', 40, { what: 'client-clock', target: 'a client', client })
  const releases = event('releasing', 51, ONE)
  expect(broken('notified', ...HOLDS, jump(1), LOSES, releases, ...next(60))).toEqual([])
  expect(broken('notified', ...HOLDS, jump(2), LOSES, releases, ...next(60))).toHaveLength(1)
  expect(broken('notified', ...HOLDS, jump(1), LOSES, ...next(60))).toEqual([
    'the lease of client 1 was not released, and client 2 was granted it 35.0 ms before its end',
  ])
})

test('a store whose leases are ended by their holders may free a name after the holder was notified because of its clock', () => {
  const jump = event('fault', 40, { what: 'client-clock', target: 'a client', client: 1 })
  const endsByHolder = true
  expect(brokenOf({ endsByHolder }, 'notified', ...HOLDS, jump, LOSES, ...next(60))).toEqual([])
  expect(brokenOf({ endsByHolder }, 'notified', ...HOLDS, jump, LOSES, ...next(49))).toHaveLength(1)
  expect(brokenOf({ endsByHolder }, 'notified', ...HOLDS, LOSES, ...next(60))).toHaveLength(1)
})

test('a holder that acts after the next grant is reported once', () => {
  const acts = event('believed', 70, { ...ONE, until: 95 })
  expect(broken('notified', ...HOLDS, acts, event('releasing', 80, ONE), ...next(60))).toEqual([
    'client 1 believed to hold it for 20.0 ms after client 2 was granted it',
  ])
})
