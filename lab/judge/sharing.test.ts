import { describe, expect, test } from 'vitest'
import { judge } from './checker.ts'
import type { Details, Event, Kind } from './history.ts'
import type { Role } from './shared.ts'
import type { PromiseName } from './violation.ts'

const RUN: Details['run'] = {
  engine: 'made up',
  seed: 1,
  ttl: 100,
  clients: 3,
  names: ['a', 'b'],
  shared: { a: { kind: 'semaphore', limit: 2 }, b: { kind: 'readWrite' } },
  fence: true,
  faults: [],
  versions: {},
  bound: { death: 100, election: 100 },
}

const LIMIT = 3 * (150 + 400)

describe('safety of permits', () => {
  test('permits of different slots are used at once, whatever their tokens', () => {
    const two = [...use('a', 1, { 0: 9 }, [10, 40]), ...use('a', 2, { 1: 4 }, [20, 30])]
    expect(broken('safety', two)).toEqual([])
  })

  test('more than the limit in use at once is a violation', () => {
    const two = [...use('a', 1, { 0: 1, 1: 2 }, [10, 40]), ...use('a', 2, { 0: 3 }, [20, 30])]
    expect(broken('safety', two)).toContain('3 permits were in use, with a limit of 2')
  })

  test('a permit that was used up is not counted', () => {
    const after = [...use('a', 1, { 0: 1, 1: 2 }, [10, 20]), ...use('a', 2, { 0: 3, 1: 4 }, [30, 40])]
    expect(broken('safety', after)).toEqual([])
  })

  test('a slot at the limit is a violation', () => {
    expect(broken('safety', use('a', 1, { 2: 1 }, [10]))).toEqual(['slot 2 was in use, with a limit of 2'])
  })

  test('a slot that accepts a lower token than before is a violation', () => {
    const fallen = [...use('a', 1, { 0: 7 }, [10]), ...use('a', 2, { 0: 6 }, [20])]
    expect(broken('safety', fallen)).toEqual(['a write with token 6 was accepted after one with 7'])
  })
})

describe('safety of readers and writers', () => {
  test('readers run beside each other', () => {
    const readers = [...use('b', 1, { 1: 1 }, [10, 40], 'reader'), ...use('b', 2, { 2: 2 }, [20, 30], 'reader')]
    expect(broken('safety', readers)).toEqual([])
  })

  test('a write between two reads is a violation', () => {
    const beside = [...use('b', 1, { 1: 1 }, [10, 40], 'reader'), ...use('b', 2, { 0: 2 }, [20], 'writer')]
    expect(broken('safety', beside)).toEqual(['client 2 wrote beside the reader of client 1'])
  })

  test('a read between two writes is a violation', () => {
    const beside = [...use('b', 1, { 0: 1 }, [10, 40], 'writer'), ...use('b', 2, { 1: 2 }, [20], 'reader')]
    expect(broken('safety', beside)).toEqual(['client 1 wrote beside the reader of client 2'])
  })

  test('two writers at once are a violation', () => {
    const beside = [...use('b', 1, { 0: 1 }, [10, 40], 'writer'), ...use('b', 2, { 1: 2 }, [20], 'writer')]
    expect(broken('safety', beside)).toEqual(['client 1 wrote beside the writer of client 2'])
  })

  test('a stale writer after a reader, and a stale reader after a writer, are violations', () => {
    const reader = use('b', 1, { 1: 7 }, [10], 'reader')
    expect(broken('safety', [...reader, ...use('b', 2, {}, [20], 'writer', 6)])).toEqual([
      'a write with token 6 was accepted after one with 7',
    ])
    const writer = use('b', 2, {}, [5], 'writer', 8)
    expect(broken('safety', [...writer, ...reader])).toEqual(['a write with token 7 was accepted after one with 8'])
    expect(broken('safety', [...reader, ...use('b', 3, { 1: 6 }, [30], 'reader')])).toEqual([])
  })

  test('a writer after the reader is none, even if the reader still believes to hold', () => {
    const after = [...use('b', 1, { 1: 1 }, [10, 20], 'reader'), ...use('b', 2, { 0: 2 }, [30], 'writer')]
    expect(broken('safety', after)).toEqual([])
  })
})

test('tokens and notification are judged for each slot', () => {
  const twice = [...use('a', 1, { 0: 1 }, [10]), ...use('a', 2, { 0: 1 }, [20])]
  expect(broken('tokens', twice)).toEqual(['token 1 was granted twice'])
  expect(broken('tokens', [...use('a', 1, { 0: 1 }, [10]), ...use('a', 2, { 1: 1 }, [20])])).toEqual([])
  const slots = { 0: 1, 1: 2 }
  const late = [...use('a', 1, slots, [10, 40]), ...use('a', 2, { 0: 3, 1: 4 }, [20])]
  expect(broken('notified', late)).toEqual(['client 1 believed to hold it for 21.0 ms after client 2 was granted it'])
})

describe('a waiter', () => {
  const asked = event('asked', 10, { client: 1, name: 'a', op: 1 })
  // Somebody always holds a permit, so the name is never free.
  const others = Array.from({ length: 40 }, (_, i) => use('a', 2 + i, { 0: 10 + i }, [20 + 50 * i, 69 + 50 * i])).flat()
  const end = event('ended', 2_020, {})

  test('that is not served in time is a violation, although others are', () => {
    expect(broken('deadlock', [asked, ...others, end])).toEqual([
      `client 1 waited 2,010 ms and was not served; ${LIMIT.toLocaleString('en')} ms are allowed`,
    ])
  })

  test('does not count while it is paused', () => {
    const pause = { what: 'pause', target: 'client 1', client: 1, pausesClient: 1 }
    expect(broken('deadlock', [asked, event('fault', 100, { ...pause, until: 600 }), ...others, end])).toEqual([])
  })

  test('that died was not left out', () => {
    expect(broken('deadlock', [asked, event('died', 900, { client: 1, pid: 1 }), ...others, end])).toEqual([])
  })
})

function event<K extends Kind>(kind: K, at: number, details: Details[K]): Event {
  return { kind, at, ...details } as Event
}

/** A client with the number of its acquisition is granted these slots, and makes a write at each of these times. */
function use(
  name: string,
  client: number,
  tokens: Readonly<Record<number, number>>,
  times: readonly number[],
  role: Role = 'permit',
  alone = 0,
): Event[] {
  const of = { client, name, op: client }
  const slots = Object.entries(tokens).map(([slot, token]) => ({ slot: Number(slot), token: String(token) }))
  const { token = String(alone) } = slots[0] ?? {}
  const [first = 0, last = times.at(-1) ?? 0] = [times[0], times.at(-1)]
  return [
    event('asked', first - 2, of),
    event('granted', first - 1, { ...of, token, asked: first - 2, role, slots }),
    ...times.flatMap(at => {
      const write = 1_000 * client + at
      return [
        event('believed', at, { ...of, until: at }),
        event('writing', at, { ...of, token, write }),
        event('accepted', at, { name, token, write, mark: token }),
      ]
    }),
    event('releasing', last + 0.5, of),
  ]
}

function broken(promise: PromiseName, events: readonly Event[]): string[] {
  const ordered = [event('run', 0, RUN), ...events.toSorted((one, other) => one.at - other.at)]
  const row = judge(ordered).rows.find(each => each.promise === promise)
  return row?.violations.map(({ what }) => what) ?? []
}
