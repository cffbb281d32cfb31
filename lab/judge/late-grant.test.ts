import { describe, expect, test } from 'vitest'
import type { Event } from './history.ts'
import { broken, event, granted, ONE, THREE, TWO, verdict } from './test/made-up.ts'

const SESSION_ENDS = event('fault', 20, { what: 'session-end', target: 'the server', forgets: true })

/** Client 2 is paused. It receives token 4 at 60, after client 1 received token 5, and then checks its lease once. */
const LATE = [
  event('asked', 0, TWO),
  granted(60, TWO, '4', 2),
  event('believed', 60, { ...TWO, until: 102 }),
  event('lost', 62, { ...TWO, reason: 'LEASE_LOST' }),
  event('releasing', 63, TWO),
] as const

const TOO_LATE = 'client 2 believed to hold it for 22.0 ms after client 1 was granted it'

describe('a paused client that receives its grant after that of a higher token', () => {
  test('holds too long if its check succeeds, and the other does not', () => {
    expect(broken('notified', ...LATE, ...next(90))).toEqual([TOO_LATE])
    expect(verdict(...LATE, ...next(90)).margins).toMatchObject({ count: 1, least: -22 })
  })

  test('holds too long, although the other had released by then', () => {
    expect(broken('notified', ...LATE, ...next(50))).toEqual([TOO_LATE])
  })

  test('is excused by the end of its session, and the other needs no excuse', () => {
    const events = [...LATE, SESSION_ENDS, ...next(90)]
    expect(broken('notified', ...events)).toEqual([])
    expect(broken('tokens', ...events)).toEqual([])
    expect(verdict(...events).overlaps).toMatchObject({ total: 1, excused: 1 })
  })

  test('is not excused by a session that ended after the other was granted the name', () => {
    expect(broken('notified', ...LATE, { ...SESSION_ENDS, at: 50 }, ...next(90))).toEqual([TOO_LATE])
  })

  test('does not hide a token that is too low', () => {
    const low = [event('asked', 70, THREE), granted(75, THREE, '3', 70), event('releasing', 76, THREE)]
    expect(broken('tokens', ...LATE, ...next(50), ...low)).toEqual([
      'token 3 was granted to a request that came after the grant of 5',
    ])
  })

  test('while two servers answer, a token may be lower than one of the other server', () => {
    const low = [event('asked', 70, THREE), granted(75, THREE, '3', 70), event('releasing', 76, THREE)]
    const split = (at: number): Event =>
      event('fault', at, { what: 'failover', target: 'it', forgets: true, splits: true, until: at + 1 })
    expect(broken('tokens', ...LATE, ...next(50), ...low, split(60))).toEqual([])
    expect(broken('tokens', ...LATE, ...next(50), ...low, split(90))).toHaveLength(1)
  })

  test('had lost the name before it died', () => {
    const died = [event('asked', 0, TWO), granted(60, TWO, '4', 2), event('died', 70, { client: 2, pid: 2 })]
    const last = [event('asked', 250, THREE), granted(300, THREE, '6'), event('releasing', 310, THREE)]
    expect(verdict(...died, ...next(50), ...last).recoveries).toBeUndefined()
  })

  test('was not the first to show that an earlier holder had lost the name', () => {
    const before = [event('asked', 0, THREE), granted(5, THREE, '3'), event('believed', 5, { ...THREE, until: 35 })]
    const late = [event('asked', 0, TWO), granted(205, TWO, '4', 2), event('believed', 205, { ...TWO, until: 260 })]
    expect(broken('notified', ...before, ...next(50), ...late, event('ended', 400, {}))).toContain(
      'client 3 was not notified within 100 ms after client 1 was granted it',
    )
  })
})

test('of two holders at once, the one with the lower token holds too long', () => {
  const two = [event('asked', 0, TWO), granted(30, TWO, '4', 2), event('believed', 80, { ...TWO, until: 102 })] as const
  expect(broken('notified', ...two, ...next(90), event('releasing', 82, TWO))).toEqual([
    'client 2 believed to hold it for 42.0 ms after client 1 was granted it',
  ])
})

/** Client 1 receives token 5 at 40, and holds until then. */
function next(until: number): Event[] {
  return [
    event('asked', 1, ONE),
    granted(40, ONE, '5', 30),
    event('believed', until - 1, { ...ONE, until }),
    event('releasing', until, ONE),
  ]
}
