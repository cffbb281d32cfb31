import { describe, expect, test } from 'vitest'
import type { Details, Event } from './history.ts'
import { broken, event } from './test/made-up.ts'
import { type Mistake, requests } from './test/requests.ts'

type Asked = Details['requested']
type Answer = Omit<Details['answered'], 'request'>

let last = 0

/** A request of the claim, which is its client's number, and its answer. */
function ask(
  client: number,
  verb: Asked['verb'],
  sent: number,
  received: number,
  answer?: Answer,
  terms = {},
): Event[] {
  last += 1
  const about = { client, name: 'a', claim: `claim ${client}`, request: last }
  const asked = event('requested', sent, { ...about, verb, ttl: 100, limit: 1, units: 1, ...terms })
  return answer ? [asked, event('answered', received, { request: last, ...answer })] : [asked]
}

const held = (token: string, ...slots: number[]): Answer => {
  return { is: 'held', token, ttl: 100, slots: slots.length > 0 ? slots : [0] }
}
const busy: Answer = { is: 'busy' }
const gone: Answer = { is: 'gone' }
const released: Answer = { is: 'released' }

const found = (...events: readonly Event[]): string[] => broken('answers', ...events)

describe('a lease', () => {
  const holds = ask(1, 'acquire', 0, 5, held('5'))

  test('excludes others until it may have ended', () => {
    expect(found(...holds, ...ask(2, 'acquire', 90, 99, held('6')))).toEqual([])
    expect(found(...holds, ...ask(2, 'acquire', 80, 90, held('6')))).toEqual([
      'client 2 was granted slot 0 with token 6, 8 ms before the lease of client 1 ended',
    ])
  })

  test('is extended by a renewal, and ended by a release that was sent', () => {
    const renewed = ask(1, 'renew', 50, 55, held('5'))
    expect(found(...holds, ...renewed, ...ask(2, 'acquire', 90, 120, held('6')))).toHaveLength(1)
    expect(found(...holds, ...renewed, ...ask(2, 'acquire', 90, 150, held('6')))).toEqual([])
    const unanswered = ask(1, 'release', 60, 0)
    expect(found(...holds, ...renewed, ...unanswered, ...ask(2, 'acquire', 61, 70, held('6')))).toEqual([])
  })

  test('is not shortened by a renewal without an answer that was sent before', () => {
    const renewed = [...ask(1, 'renew', 10, 0), ...ask(1, 'renew', 50, 55, held('5'))]
    expect(found(...holds, ...renewed, ...ask(2, 'acquire', 120, 130, held('6')))).toHaveLength(1)
    expect(found(...holds, ...renewed, ...ask(2, 'acquire', 140, 150, held('6')))).toEqual([])
  })

  test('is revived by no renewal after the next grant', () => {
    const next = [...ask(2, 'acquire', 100, 105, held('6')), ...ask(2, 'release', 106, 107, released)]
    expect(found(...holds, ...next, ...ask(1, 'renew', 110, 112, held('5')))).toHaveLength(1)
  })

  test('is not gone before its end, whatever was asked', () => {
    for (const [verb, answer] of [
      ['renew', gone],
      ['release', gone],
      ['acquire', busy],
    ] as const) {
      expect(found(...holds, ...ask(1, verb, 50, 60, answer))).toHaveLength(1)
      expect(found(...holds, ...ask(1, verb, 95, 99, answer))).toEqual([])
    }
  })

  test('ends early if the clock of its own client jumps', () => {
    const jump = (client: number): Event => event('fault', 40, { what: 'client-clock', target: 'a client', client })
    expect(found(...holds, jump(1), ...ask(1, 'release', 50, 60, gone))).toEqual([])
    expect(found(...holds, jump(2), ...ask(1, 'release', 50, 60, gone))).toHaveLength(1)
    // The store has not forgotten what it said.
    expect(found(...ask(1, 'release', 20, 25, gone), jump(1), ...ask(1, 'acquire', 50, 55, held('5')))).not.toEqual([])
  })

  test('excludes nobody while a second server may answer', () => {
    const split = (at: number): Event =>
      event('fault', at, { what: 'failover', target: 'it', forgets: true, splits: true, until: at + 30 })
    const renewed = ask(1, 'renew', 60, 65, held('5'))
    const next = ask(2, 'acquire', 50, 55, held('6'))
    expect(found(...holds, ...next, ...renewed)).toHaveLength(1)
    expect(found(...holds, split(30), ...next, ...renewed)).toEqual([])
    expect(found(...holds, split(0), ...next, ...renewed)).toHaveLength(1)
    expect(found(...holds, split(30), ...ask(1, 'acquire', 50, 55, busy), ...renewed)).toEqual([])
    expect(found(...holds, split(0), ...ask(1, 'acquire', 50, 55, busy), ...renewed)).not.toEqual([])
  })

  test('keeps its slots', () => {
    expect(found(...holds, ...ask(1, 'renew', 50, 55, held('5', 1)))).toEqual([
      'client 1 held slot 0, and then slot 1, with one token',
    ])
  })

  test('is the same for its claim until it has ended', () => {
    expect(found(...holds, ...ask(1, 'acquire', 10, 15, held('6')))).toHaveLength(1)
    expect(found(...holds, ...ask(1, 'acquire', 100, 115, held('6')))).toEqual([])
  })
})

describe('tokens', () => {
  test('rise in the order in which leases were granted', () => {
    const first = [...ask(1, 'acquire', 0, 5, held('6')), ...ask(1, 'release', 10, 12, released)]
    expect(found(...first, ...ask(2, 'acquire', 20, 25, held('5')))).toEqual([
      'client 2 was granted token 5 after client 1 had received token 6',
    ])
  })

  test('are granted once', () => {
    const first = [...ask(1, 'acquire', 0, 5, held('5')), ...ask(1, 'release', 10, 12, released)]
    expect(found(...first, ...ask(2, 'acquire', 20, 25, held('5')))).toContain(
      'client 2 was granted token 5, as client 1 was',
    )
  })

  test('an earlier request of the claim, whose answer was lost, may have been granted', () => {
    const first = ask(1, 'acquire', 0, 5, held('6', 1), { limit: 2 })
    const late = ask(2, 'acquire', 20, 25, held('5', 0), { limit: 2 })
    expect(found(...first, ...late)).toContain('client 2 was granted token 5 after client 1 had received token 6')
    const unanswered = ask(2, 'acquire', 1, 0, undefined, { limit: 2 })
    expect(found(...first, ...unanswered, ...late)).toEqual([])
    // Told that it does not hold, the claim was granted later.
    const refused = ask(2, 'acquire', 8, 15, busy, { limit: 2 })
    expect(found(...first, ...unanswered, ...refused, ...late)).toHaveLength(1)
  })
})

describe('a claim that was withdrawn', () => {
  test('holds nothing afterwards', () => {
    const withdrawn = ask(1, 'release', 20, 25, gone)
    expect(found(...withdrawn, ...ask(1, 'acquire', 30, 35, held('5')))).not.toEqual([])
    // It was under way beside the release, and should have been refused, or its lease ended.
    expect(found(...ask(1, 'acquire', 19, 35, held('5')), ...withdrawn)).toHaveLength(1)
  })

  test('is released once', () => {
    const once = [...ask(1, 'acquire', 0, 5, held('5')), ...ask(1, 'release', 20, 25, released)]
    expect(found(...once, ...ask(1, 'release', 30, 35, gone))).toEqual([])
    expect(found(...once, ...ask(1, 'release', 24, 35, released))).toEqual([])
    expect(found(...once, ...ask(1, 'release', 30, 35, released))).toEqual([
      'client 1 got `released` twice for one claim',
    ])
    const copy = ask(1, 'acquire', 6, 0)
    expect(found(...once, ...copy, ...ask(1, 'release', 30, 35, released))).toEqual([])
  })
})

describe('slots', () => {
  const permit = { limit: 2 }
  const one = ask(1, 'acquire', 0, 5, held('5', 0), permit)
  const two = ask(2, 'acquire', 10, 15, held('6', 1), permit)

  test('are held up to the limit', () => {
    expect(found(...one, ...two)).toEqual([])
    expect(found(...one, ...two, ...ask(3, 'acquire', 20, 25, held('7', 2), permit))).toEqual([
      'client 3 was granted slot 2 with token 7, 83 ms before the lease of client 2 ended',
    ])
  })

  test('are granted to an acquire that its release overtook', () => {
    const crossing = [...ask(1, 'acquire', 0, 9, held('5', 0), permit), ...ask(1, 'release', 1, 3, released)]
    expect(found(...crossing, ...two)).toEqual([])
  })

  test('are the lowest free ones', () => {
    expect(found(...one, ...ask(1, 'release', 6, 8, released), ...two)).toHaveLength(1)
    expect(found(...one, ...ask(1, 'release', 6, 20, released), ...two)).toEqual([])
  })

  test('may be held by a claim that got no answer', () => {
    const lost = ask(3, 'acquire', 0, 0, undefined, permit)
    expect(found(...lost, ...two)).toEqual([])
    expect(found(...lost, ...ask(3, 'release', 4, 6, gone), ...two)).toHaveLength(1)
    expect(found(...one, ...lost, ...ask(2, 'acquire', 10, 15, held('6', 0), permit))).toHaveLength(1)
  })

  test('are not held in addition to a claim of limit 1', () => {
    expect(found(...one, ...ask(2, 'acquire', 10, 15, held('6', 1)))).toHaveLength(1)
    expect(
      found(...ask(2, 'acquire', 0, 5, held('4')), ...ask(3, 'acquire', 10, 15, held('5', 1), permit)),
    ).toHaveLength(1)
  })

  test('may be in use by many leases that may have ended', () => {
    const many = { limit: 20 }
    const twelve = Array.from({ length: 12 }, (_, slot) =>
      ask(slot, 'acquire', slot, slot + 1, held(`${slot + 1}`, slot), many),
    )
    expect(found(...twelve.flat(), ...ask(20, 'acquire', 115, 120, held('20', 12), many))).toEqual([])
    expect(found(...twelve.flat(), ...ask(20, 'acquire', 115, 120, held('20', 13), many))).toHaveLength(1)
  })

  test('show which leases have ended', () => {
    // The second got slot 0, so the first had ended: its slots are free.
    const ended = [...one, ...ask(2, 'acquire', 100, 105, held('6', 0), permit)]
    expect(found(...ended, ...ask(3, 'acquire', 110, 115, held('7', 1), permit))).toEqual([])
    expect(found(...ended, ...ask(3, 'acquire', 110, 115, held('7', 2), permit))).toHaveLength(1)
  })
})

test('faults of data and clocks may end a lease, of one client or of all', () => {
  const events = [...ask(1, 'acquire', 0, 5, held('5')), ...ask(2, 'acquire', 50, 55, held('6'))]
  const forgets = (at: number, client?: number): Event =>
    event('fault', at, { what: 'forget', target: 'it', forgets: true, until: at + 1, ...(client && { client }) })
  expect(found(...events)).toHaveLength(1)
  expect(found(...events, forgets(20))).toEqual([])
  expect(found(...events, forgets(20, 1))).toEqual([])
  expect(found(...events, forgets(20, 2))).toHaveLength(1)
  // What the store said before may be forgotten.
  const withdrawn = [...ask(1, 'release', 10, 20, gone), ...ask(1, 'acquire', 40, 50, held('5'))]
  expect(found(...withdrawn)).toHaveLength(2)
  expect(found(...withdrawn, forgets(30))).toEqual([])
  const permit = { limit: 2 }
  const released1 = [...ask(1, 'acquire', 0, 5, held('5', 0), permit), ...ask(1, 'release', 10, 15, released)]
  const next = ask(2, 'acquire', 40, 45, held('6', 1), permit)
  expect(found(...released1, ...next)).toHaveLength(1)
  expect(found(...released1, ...next, forgets(20))).toEqual([])
})

describe('of a store that decides by the rules', () => {
  const SEEDS = 1_500

  function wrong(patience: number, mistake?: Mistake): number {
    const each = Array.from({ length: SEEDS }, (_, seed) => found(...requests(seed, patience, mistake)).length > 0)
    return each.filter(Boolean).length
  }

  test.each([20, 300, 2_000])('no answer is wrong, with clients that wait for %i ms', patience => {
    for (let seed = 0; seed < SEEDS; seed += 1) expect(found(...requests(seed, patience)), `seed ${seed}`).toEqual([])
  })

  test.each<[string, Mistake]>([
    ['a slot too many', { answer: each => ({ ...each, ...(each.slots && { slots: [...each.slots, 99] }) }) }],
    ['one slot for all units', { answer: each => ({ ...each, ...(each.slots && { slots: each.slots.slice(0, 1) }) }) }],
    ['no tombstone', { state: state => ({ ...state, gone: new Map() }) }],
    [
      'a renewal lasts half as long',
      { renewed: ttl => ttl / 2, answer: each => ({ ...each, ttl: 2 * (each.ttl ?? 0) }) },
    ],
    ['a holder is overlooked', { state: state => ({ ...state, holders: state.holders.slice(1) }) }],
    ['a token falls', { state: state => ({ ...state, token: state.token - 1 }) }],
    ['a release is not carried out', { answer: each => (each.is === 'released' ? { is: 'gone' } : each) }],
  ])('a mistake is found: %s', (_, mistake) => expect(wrong(2_000, mistake)).toBeGreaterThan(SEEDS / 100))
})
