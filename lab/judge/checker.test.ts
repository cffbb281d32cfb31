import { describe, expect, test } from 'vitest'
import { judge } from './checker.ts'
import type { Details, Event, Kind } from './history.ts'
import type { PromiseName } from './violation.ts'

const ONE = { client: 1, name: 'a', op: 1 }
const TWO = { client: 2, name: 'a', op: 2 }

const RUN: Details['run'] = {
  engine: 'made up',
  seed: 1,
  ttl: 100,
  clients: 2,
  names: ['a'],
  fence: true,
  faults: [],
  versions: {},
  bound: { death: 100, election: 300 },
}

describe('safety', () => {
  test('a write after one with a higher token is a violation', () => {
    expect(
      broken(
        'safety',
        ...held(0, ONE, '5'),
        ...write(10, ONE, '5', 1),
        ...held(200, TWO, '4'),
        ...write(210, TWO, '4', 2),
      ),
    ).toContain('a write with token 4 was accepted after one with 5')
  })

  test('a write is accepted once, and a fence accepts no token below the highest one seen', () => {
    const again = event('accepted', 30, { name: 'a', token: '5', write: 1, mark: '6' })
    expect(broken('safety', ...held(0, ONE, '5'), ...write(10, ONE, '5', 1), again)).toEqual([
      'a write was accepted twice',
      'a write with token 5 passed a fence that had seen 6',
    ])
  })

  test('a writer gets the answer that was decided', () => {
    const [leaves, accepted] = write(10, ONE, '5', 1)
    const refused = event('refused', 20, { ...ONE, write: 1 })
    expect(broken('safety', ...held(0, ONE, '5'), leaves, accepted, refused)).toEqual([
      'an accepted write was answered as refused',
    ])
  })

  test('an answer needs a decision', () => {
    const [leaves, , wrote] = write(10, ONE, '5', 1)
    expect(broken('safety', ...held(0, ONE, '5'), leaves, wrote)).toEqual([
      'a write was answered as done, but the resource did not decide it',
    ])
  })

  test('a write that was not answered may have either outcome', () => {
    const [leaves, accepted] = write(10, ONE, '5', 1)
    expect(broken('safety', ...held(0, ONE, '5'), leaves, accepted, event('unsure', 20, { ...ONE, write: 1 }))).toEqual(
      [],
    )
  })
})

describe('tokens', () => {
  test('no token is granted twice', () => {
    expect(broken('tokens', ...held(0, ONE, '5'), ...held(200, TWO, '5'))).toEqual(['token 5 was granted twice'])
  })

  test('a token is above all that were granted before its request', () => {
    expect(broken('tokens', ...held(0, ONE, '5'), ...held(200, TWO, '4'))).toEqual([
      'token 4 was granted to a request that came after the grant of 5',
    ])
  })

  test('concurrent requests may get tokens in any order', () => {
    const [, , ...rest] = held(200, TWO, '4')
    const waited = (sent: number): Event[] => [
      event('asked', 0, TWO),
      ...held(1, ONE, '5'),
      granted(200, TWO, '4', sent),
      ...rest,
    ]
    expect(broken('tokens', ...waited(0))).toEqual([])
    // A waiter began early, but the request that was granted left after the other grant.
    expect(broken('tokens', ...waited(190))).toHaveLength(1)
  })

  test('tokens above 2^53 are distinguished', () => {
    expect(broken('tokens', ...held(0, ONE, '9007199254740992'), ...held(200, TWO, '9007199254740993'))).toEqual([])
  })
})

describe('notified in time', () => {
  const lost = event('lost', 95, { ...ONE, reason: 'LEASE_LOST' })
  const late = [event('asked', 0, ONE), granted(5, ONE, '5'), event('believed', 6, { ...ONE, until: 95 })] as const

  test('a check that succeeds after the next grant means a late notification', () => {
    expect(broken('notified', ...late, ...held(80, TWO, '6'), lost)).toEqual([
      'client 1 believed to hold it for 15.0 ms after client 2 was granted it',
    ])
  })

  test('a pause excuses a late write but not a late successful check', () => {
    const pause = event('fault', 20, { what: 'pause', target: 'client 1', client: 1, pausesClient: 1, until: 200 })
    expect(broken('notified', ...late, pause, ...held(80, TWO, '6'), lost)).toHaveLength(1)
    const writing = event('writing', 320, { ...ONE, token: '5', write: 1 })
    const after = event('lost', 330, { ...ONE, reason: 'LEASE_LOST' })
    expect(broken('notified', ...late, pause, ...held(110, TWO, '6'), writing, after)).toEqual([])
    expect(broken('notified', ...late, ...held(110, TWO, '6'), writing, after)).toHaveLength(1)
  })

  test('a clock jump excuses an overlap, which is counted', () => {
    const leap = event('fault', 20, { what: 'clock', target: 'server', changesClock: true })
    expect(broken('notified', ...late, leap, ...held(80, TWO, '6'), lost)).toEqual([])
    expect(verdict(...late, leap, ...held(80, TWO, '6'), lost).overlaps).toMatchObject({
      total: 1,
      excused: 1,
      idle: 1,
    })
  })

  test('a fault excuses only the leases that it may have ended', () => {
    const forgets = (at: number, client?: number): Event =>
      event('fault', at, { what: 'forget', target: 'it', forgets: true, until: at + 1, ...(client && { client }) })
    const told = (fault: Event): string[] => broken('notified', ...late, fault, ...held(80, TWO, '6'), lost)
    expect(told(forgets(20))).toEqual([])
    expect(told(forgets(20, 1))).toEqual([])
    expect(told(forgets(20, 2))).toHaveLength(1) // the connection of another client
    expect(told(forgets(3))).toHaveLength(1) // before the granted request left
  })

  test('a pause that ended before the last check excuses nothing', () => {
    const pause = event('fault', 5, { what: 'pause', target: 'client 1', client: 1, pausesClient: 1, until: 5.5 })
    const writing = event('writing', 320, { ...ONE, token: '5', write: 1 })
    const after = event('lost', 330, { ...ONE, reason: 'LEASE_LOST' })
    expect(broken('notified', ...late, pause, ...held(110, TWO, '6'), writing, after)).toHaveLength(1)
  })

  test('an excused write does not hide that its client was never notified', () => {
    const writing = event('writing', 130, { ...ONE, token: '5', write: 1 })
    expect(broken('notified', ...late, ...held(110, TWO, '6'), writing, event('ended', 7_000, {}))).toEqual([
      'client 1 was not notified within 100 ms after client 2 was granted it',
    ])
  })

  test('F12: a row that passed despite a late notification has the reason and each count', () => {
    const leap = event('fault', 20, { what: 'clock', target: 'server', changesClock: true })
    const seen = (...events: readonly Event[]): readonly string[] | undefined =>
      verdict(...late, ...events, ...held(80, TWO, '6'), lost).rows.find(({ promise }) => promise === 'notified')?.seen
    expect(seen(leap)).toEqual([
      'losses reported to their holders: 1',
      'takeovers from a live holder that was notified late: 1, up to 15 ms after the next grant, excused by clock',
      'one overlap of two holders, excused by clock: no write of the older came after one of the newer (1)',
    ])
    expect(seen()?.[1]).toMatch(/after the next grant, 1 not excused$/)
  })

  test('a client that was paused until its lease ended does not hold when it reads the grant', () => {
    const stale = [event('asked', 0, TWO), granted(50, TWO, '4'), event('releasing', 51, TWO)] as const
    expect(broken('notified', ...late, ...stale, lost)).toEqual([])
    expect(broken('notified', ...late, ...stale.slice(0, 2), lost)).toHaveLength(1)
  })

  test('a holder that is never notified was notified too late', () => {
    expect(broken('notified', ...late, ...held(110, TWO, '6'), event('ended', 400, {}))).toEqual([
      'client 1 was not notified within 100 ms after client 2 was granted it',
    ])
  })

  test('a holder that died needs no notification', () => {
    const died = event('died', 40, { client: 1, pid: 1 })
    expect(broken('notified', ...late, died, ...held(110, TWO, '6'), event('ended', 400, {}))).toEqual([])
  })
})

describe('waiting', () => {
  const opened = (waiting: 'pushed' | 'polled'): Event =>
    event('opened', 0, { client: 1, waiting, order: 'first come, first served' })
  /** Client 1 releases at `at`, and client 2 is granted the name `delay` ms later. */
  const handover = (at: number, delay: number, number = 0): Event[] => {
    const one = { ...ONE, op: 100 + number }
    const two = { ...TWO, op: 200 + number }
    return [
      event('asked', at - 700, two),
      event('asked', at - 700, one),
      granted(at - 600, one, `${2 * number + 1}`),
      event('releasing', at, one),
      event('released', at + 2, { ...one, outcome: 'released' }),
      granted(at + 2 + delay, two, `${2 * number + 2}`),
      event('releasing', at + 3 + delay, two),
      event('released', at + 5 + delay, { ...two, outcome: 'released' }),
    ]
  }
  const handovers = (times: number, delay: number): Event[] =>
    Array.from({ length: times }, (_, number) => handover(2_000 * (number + 1), delay, number)).flat()

  test('a release that wakes nobody is a violation where waiters are notified, unless it is rare', () => {
    expect(broken('waiting', opened('pushed'), ...handovers(4, 190))).toEqual([])
    expect(broken('waiting', opened('pushed'), ...handovers(2, 400))).toEqual([])
    expect(broken('waiting', opened('polled'), ...handovers(4, 400))).toEqual([])
    expect(broken('waiting', opened('pushed'), ...handovers(4, 400))[0]).toBe(
      'client 1 released it in 2 ms, and client 2 waited: the next granted request left 400 ms later; 203 ms are allowed',
    )
  })

  test('near a fault, and while the machine is busy, nothing is judged', () => {
    const late = [opened('pushed'), ...handovers(3, 400)]
    const fault = event('fault', 1_900, { what: 'cut', target: 'it', client: 1, until: 1_950 })
    expect(broken('waiting', ...late, fault)).toEqual([])
    expect(broken('waiting', ...late, event('stalled', 2_100, { ms: 150 }))).toEqual([])
    // The process was paused, and the machine was not busy.
    const pause = event('fault', 900, { what: 'pause', target: 'it', client: 1, pausesClient: 1, until: 1_200 })
    expect(broken('waiting', ...late, pause, event('stalled', 1_201, { client: 1, ms: 300 }))).toHaveLength(3)
  })

  test('a waiter that many overtake is a violation, and the fault of a slow client excuses nothing', () => {
    const far = (steady: boolean): Event =>
      event('fault', 900, { what: 'far', target: 'client 2', client: 2, steady, until: 9_000 })
    const passed = (times: number): Event[] =>
      Array.from({ length: times }, (_, number) =>
        held(2_000 + 100 * number, { ...ONE, op: 10 + number }, `${number}`),
      ).flat()
    const waits = [opened('polled'), event('asked', 1_000, TWO)]
    expect(broken('waiting', ...waits, ...passed(2))).toEqual([])
    expect(broken('waiting', ...waits, ...passed(3), far(false))).toEqual([])
    expect(broken('waiting', ...waits, ...passed(3), far(true))).toEqual([
      'client 2 waited for 1,251 ms in calm times; requests that came later and were granted: 3; allowed: 2',
    ])
  })

  test('a run with few releases in calm times, or without takeovers, proves nothing', () => {
    const lacks = (promise: PromiseName, ...events: readonly Event[]): readonly string[] | undefined =>
      verdict(...events).rows.find(each => each.promise === promise)?.missing
    expect(lacks('waiting', opened('pushed'), ...handovers(4, 0))?.[0]).toMatch(/^4 releases .* at least 5 are needed/)
    expect(lacks('waiting', opened('pushed'), ...handovers(5, 0))).toEqual([])
    expect(lacks('waiting', opened('polled'), ...handovers(1, 0))).toEqual([])
    expect(lacks('faults', event('fault', 1, { what: 'cut', target: 'it' }), ...handovers(30, 0))).toEqual([
      '0 takeovers, at least 3 are needed',
    ])
  })
})

describe('liveness', () => {
  const dies = [...held(0, ONE, '5').slice(0, 3), event('died', 10, { client: 1, pid: 1 })]
  const asks = event('asked', 12, TWO)

  test('the name of a dead holder is acquired within the ttl and the bound of the engine', () => {
    expect(broken('deadlock', ...dies, asks, granted(209, TWO, '6'))).toEqual([])
    expect(broken('deadlock', ...dies, asks, granted(219, TWO, '6'))).toEqual([
      'no client held it for 207 ms after client 1 died, although clients waited; 200 ms are allowed; its last holder held it until 0.010 s',
    ])
  })

  test('a name that is never acquired again is a violation at the end, but only if clients wait', () => {
    expect(broken('deadlock', ...dies, asks, event('ended', 300, {}))).toHaveLength(1)
    expect(broken('deadlock', ...dies, event('ended', 300, {}))).toEqual([])
  })

  test('clients that retry after each refusal wait all the time', () => {
    const tries = [20, 90, 160, 230, 300].flatMap((at, index) => {
      const of = { client: 2, name: 'a', op: 10 + index }
      return [event('asked', at, of), event('failed', at + 5, { ...of, code: 'BUSY' })]
    })
    expect(broken('deadlock', ...dies, ...tries)).toHaveLength(1)
  })

  test('a restarting server has its bound, and an outage does not count', () => {
    const restart = { what: 'restart', target: 'server' }
    const asked = [...dies, asks]
    expect(broken('faults', ...asked, event('fault', 50, { ...restart, until: 60 }), granted(450, TWO, '6'))).toEqual(
      [],
    )
    expect(
      broken('faults', ...asked, event('fault', 50, { ...restart, until: 60 }), granted(470, TWO, '6')),
    ).toHaveLength(1)
    const outage = event('fault', 50, { ...restart, stopsMajority: true })
    expect(broken('faults', ...asked, outage, event('healed', 900, restart), granted(1_200, TWO, '6'))).toEqual([])
  })

  test('a paused client waits for nothing', () => {
    const pause = event('fault', 50, { what: 'pause', target: 'client 2', client: 2, pausesClient: 2, until: 900 })
    expect(broken('deadlock', ...dies, asks, pause, granted(1_000, TWO, '6'))).toEqual([])
  })
})

describe('a verdict', () => {
  test('is inconclusive for a run with too few events, and reports what is missing', () => {
    const { outcome, rows } = verdict(...held(0, ONE, '5'))
    expect(outcome).toBe('inconclusive')
    expect(rows[0]?.missing).toEqual([
      '0 accepted writes, at least 50 are needed',
      '0 refused writes, at least 1 are needed',
    ])
  })

  test('is inconclusive when a requested fault never occurred', () => {
    const { rows } = judge([event('run', 0, { ...RUN, faults: ['pause'] })])
    expect(rows.at(-1)?.missing).toContain('the fault pause never occurred')
  })

  test('can be written as JSON and read again', () => {
    const made = verdict(...held(0, ONE, '5'), ...write(10, ONE, '5', 1))
    expect(JSON.parse(JSON.stringify(made))).toEqual(made)
  })

  test('needs a history that begins with its run and has no unknown acquisition', () => {
    expect(() => judge([])).toThrow('a history begins with the event run')
    expect(() => verdict(granted(5, ONE, '5'))).toThrow(
      'the history has granted for acquisition 1, which was never requested',
    )
  })
})

function event<K extends Kind>(kind: K, at: number, details: Details[K]): Event {
  return { kind, at, ...details } as Event
}

function granted(at: number, of: typeof ONE, token: string, sent = at): Event {
  return event('granted', at, { ...of, token, asked: sent })
}

/** Acquired, and released after half of the ttl. */
function held(at: number, of: typeof ONE, token: string): Event[] {
  return [
    event('asked', at, of),
    granted(at, of, token),
    event('believed', at, { ...of, until: at + 90 }),
    event('releasing', at + 50, of),
    event('released', at + 51, of),
  ]
}

function write(at: number, of: typeof ONE, token: string, number: number): [Event, Event, Event] {
  return [
    event('writing', at, { ...of, token, write: number }),
    event('accepted', at + 1, { name: of.name, token, write: number, mark: token }),
    event('wrote', at + 2, { ...of, write: number }),
  ]
}

function verdict(...events: readonly Event[]): ReturnType<typeof judge> {
  return judge([event('run', 0, RUN), ...events.toSorted((one, other) => one.at - other.at)])
}

function broken(promise: PromiseName, ...events: readonly Event[]): string[] {
  const row = verdict(...events).rows.find(each => each.promise === promise)
  return row?.violations.map(({ what }) => what) ?? []
}
