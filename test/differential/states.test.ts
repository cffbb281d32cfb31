import { expect, test } from 'vitest'
import type { LeaseRecord } from '../../src/contract/store.ts'
import type { Answer } from './allowed.ts'
import { States } from './states.ts'
import type { Sent } from './together.ts'

const EXACT = { precision: 2, lasts: (ms: number) => ms, ends: (ms: number) => ms }
const BY_SIGHT = { ...EXACT, countsFromSight: true }

const watching = { watched: new Set<string>(), kept: new Set<string>() }

const ASKER = { id: 'a', owner: 'a', note: '', ttl: 450, limit: 1, units: 1, grace: 100, queue: true }

/** A request for a lease of 450 ms that failed when its limit of 150 ms was over. */
const lost: Sent = {
  op: { verb: 'acquire', asker: ASKER },
  window: { sent: 0, received: 250 },
  watching,
  until: 150,
}

/** What an inspection between 300 and 310 shows. */
function inspected(...records: LeaseRecord[]): Sent {
  return {
    op: { verb: 'inspect' },
    window: { sent: 300, received: 310 },
    answer: { is: records },
    watching,
    until: 5_300,
  }
}

function held(remaining: number): LeaseRecord {
  return { name: 'a', state: 'held', owner: 'a', token: 1n, note: '', remaining }
}

test.each([
  ['by the clock of the server', EXACT, 300],
  ['from when the store saw it', BY_SIGHT, 450],
])('what a request without an answer has set counts %s, also if its limit is over', (_, leniency, longest) => {
  const after = (next: Sent): string | undefined => {
    const states = new States(leniency)
    return states.add([lost]) ?? states.add([next])
  }
  expect(after(inspected())).toBeUndefined()
  expect(after(inspected(held(150)))).toBeUndefined()
  expect(after(inspected(held(longest)))).toBeUndefined()
  expect(after(inspected(held(longest + 20)))).toBeDefined()
})

test.each([EXACT, BY_SIGHT])('it is not carried out after one that was sent after its limit: %j', leniency => {
  const states = new States(leniency)
  states.add([lost])
  expect(states.add([inspected()])).toBeUndefined()
  const later = { ...inspected(held(300)), window: { sent: 400, received: 410 } }
  expect(states.add([later])).toContain('owners should be []')
})

test('a waiter whose grant is answered first is shown with the position that it had', () => {
  const states = new States(EXACT)
  const acquire = (id: string, sent: number, is: Answer, kept: readonly string[]): Sent => ({
    op: { verb: 'acquire', asker: { ...ASKER, id, owner: id, ttl: 30_000 } },
    window: { sent, received: sent + 3 },
    answer: { is },
    watching: { ...watching, kept: new Set(kept) },
    until: sent + 10_000,
  })
  const grant = (token: bigint): Answer => ({ held: true, token, ttl: 30_000 })
  states.add([acquire('a', 0, grant(1n), [])])
  states.add([acquire('b', 10, { held: false, retryAfter: 1_000, ahead: 0, listens: true, kept: true }, [])])
  const broken: Sent = { ...acquire('b', 2_000, 2n, ['b']), op: { verb: 'break' } }
  const shown = (remaining: number): Sent => {
    const waiter: LeaseRecord = { name: 'a', state: 'waiting', owner: 'b', note: '', remaining, position: 0 }
    return { ...inspected(waiter), window: { sent: 2_000, received: 2_005 } }
  }
  const together = (remaining: number): Sent[] => [broken, acquire('b', 2_000, grant(3n), ['b']), shown(remaining)]
  expect(states.add(together(2_000))).toBeDefined()
  expect(states.add(together(3_010))).toBeUndefined()
})
